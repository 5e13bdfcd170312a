"""Reach a port of a node from this host: listen on loopback, connect from inside the node's network namespace."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from emulator.core.errors import HostError, LabError

if TYPE_CHECKING:
    from types import TracebackType

    from emulator.core.enter import EnterToken
    from emulator.core.plan import NodePlan


class Forwarder:
    """Passes connections to 127.0.0.1:`port` on to `target` of a node. Raises HostError when the port is taken."""

    def __init__(self, node: NodePlan, token: EnterToken, target: int, port: int = 0) -> None:
        self._node = node.name
        self._address = (str(node.address), target)
        self._netns = dict(token.namespaces)["net"]
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("127.0.0.1", port))
        except OSError as error:
            self._listener.close()
            raise HostError(
                f"port {port} of 127.0.0.1 cannot be used ({error.strerror})", fix="choose another with --port"
            ) from None
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        """Accept until closed, each connection in threads of its own."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        from emulator.links.netns import inside

        try:
            # The thread visits the node's network; a socket stays in the namespace in which it was made.
            with inside(self._netns):
                server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            server.connect(self._address)
        except OSError:
            client.close()
            return
        threading.Thread(target=_pump, args=(client, server), daemon=True).start()
        _pump(server, client)

    def close(self) -> None:
        self._listener.close()

    def __enter__(self) -> Forwarder:
        if not self._netns:
            raise LabError(f"{self._node} has no network namespace", fix="bring the lab up again")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes one way until the source ends, then tell the sink so; the other way may still be open."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()
