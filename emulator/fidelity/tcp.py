"""`python -m emulator.fidelity.tcp`: how fast one TCP connection between two nodes is, as iperf measures it.

`serve PORT SECONDS` prints the bytes a second that it received, once the connection has had time to open its window;
`send ADDRESS PORT` sends until the other side has had enough.
"""

from __future__ import annotations

import socket
import sys
import time

from emulator.core import clock

#: of a connection's time, what its slow start takes and does not count
WARM = 0.25
BLOCK = 1 << 18
PATIENCE = 30.0


def serve(port: int, seconds: float) -> float:
    """Bytes a second over so many seconds, after the warm-up; raises OSError when nobody connects."""
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE)
        peer, _ = server.accept()
    with peer:
        peer.settimeout(PATIENCE)
        until, counted, start = time.monotonic() + seconds * WARM, 0, 0.0
        buffer = bytearray(BLOCK)
        while True:
            got = peer.recv_into(buffer)
            now = time.monotonic()
            if not got:
                raise ConnectionError("the sender ended before its time")
            if start:
                counted += got
                if now - start >= seconds:
                    return counted / (now - start)
            elif now >= until:
                start = now


def send(address: str, port: int) -> None:
    """Send until the receiver closes."""
    data = bytes(BLOCK)
    with _connected(address, port) as line:
        try:
            while True:
                line.sendall(data)
        except (ConnectionError, TimeoutError):
            return


def _connected(address: str, port: int) -> socket.socket:
    """A connection to a server that may still be starting."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE)
        except ConnectionError:
            if time.monotonic() > until:
                raise
            clock.RealClock().sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        sys.stdout.write(f"{serve(int(sys.argv[2]), float(sys.argv[3]))}\n")
    else:
        send(sys.argv[2], int(sys.argv[3]))
