"""ICMP echo from inside a namespace, without a ping program: one raw socket, all requests out, answers as they come.

Requests and answers are RFC 792's. A round trip ends with the kernel's stamp on the answer (SO_TIMESTAMPNS), so a
pinger that is late to read makes no slow network; a step of the wall clock in between would show.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.links.netns import travelling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ECHO, _ECHO_REPLY = 8, 0
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
#: bytes of answers that may wait to be read: some thousands
_BUFFER = 8 << 20
_PAYLOAD = b"emu ping".ljust(48, b".")


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def echo_request(identity: int, sequence: int, payload: bytes = _PAYLOAD) -> bytes:
    """An ICMP echo request."""
    header = struct.pack("!BBHHH", _ECHO, 0, 0, identity, sequence & 0xFFFF)
    return header[:2] + struct.pack("!H", checksum(header + payload)) + header[4:] + payload


@dataclass
class _Pinger:
    """A raw socket in one namespace, and what it waits for."""

    sock: socket.socket
    identity: int
    sent: dict[int, float] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def here() -> _Pinger:
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMP)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        with suppress(PermissionError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        return _Pinger(sock, int.from_bytes(os.urandom(2), "big"))

    def send(self, address: str, sequence: int) -> None:
        """One request; a network that refuses it (no route, interface down) is one that does not answer."""
        self.sent[sequence] = time.clock_gettime(time.CLOCK_REALTIME)
        try:
            self.sock.sendto(echo_request(self.identity, sequence), (address, 0))
        except OSError:
            del self.sent[sequence]

    def receive(self) -> None:
        """Take all answers that are there."""
        while True:
            try:
                packet, control, _, _ = self.sock.recvmsg(4096, 64)
            except BlockingIOError:
                return
            seconds, nanoseconds = struct.unpack("=qq", control[0][2][:16])
            kind, _, _, identity, sequence = struct.unpack_from("!BBHHH", packet, (packet[0] & 15) * 4)
            if kind == _ECHO_REPLY and identity == self.identity and sequence in self.sent:
                trip = seconds + nanoseconds / 1e9 - self.sent[sequence]
                self.answered.setdefault(sequence, max(0.0, trip))


def ping(netns: str, address: str, count: int = 1, interval: float = 0.2, timeout: float = 2.0) -> list[float | None]:
    """Round trips in real seconds of `count` requests from a namespace (a path), None for each unanswered one.

    `timeout` is how long the last one is waited for. Raises LinkError when the namespace is gone.
    """
    with travelling() as go:
        go(netns)
        pinger = _Pinger.here()
    with pinger.sock:
        start = time.monotonic()
        for sequence in range(count):
            _collect([pinger], lambda: False, start + sequence * interval)
            pinger.send(address, sequence)
        _collect([pinger], lambda: len(pinger.answered) == count, time.monotonic() + timeout)
        return [pinger.answered.get(sequence) for sequence in range(count)]


def ping_all(pairs: Sequence[tuple[str, str]], timeout: float = 2.0, again: float = 0.25) -> list[float | None]:
    """One round trip for each (namespace path, address), all at once; None where no answer came within `timeout`.

    Whoever has not answered is asked again after `again` seconds, so that one lost packet makes no silence.
    """
    pingers: dict[str, _Pinger] = {}
    with travelling() as go:
        for netns in dict.fromkeys(netns for netns, _ in pairs):
            go(netns)
            pingers[netns] = _Pinger.here()
    end = time.monotonic() + timeout
    asked: dict[int, list[int]] = {index: [] for index in range(len(pairs))}

    def silent() -> list[int]:
        return [index for index, (netns, _) in enumerate(pairs) if _first(pingers[netns], asked[index]) is None]

    sequence = 0
    while silent() and time.monotonic() < end:
        for index in silent():
            pingers[pairs[index][0]].send(pairs[index][1], sequence)
            asked[index].append(sequence)
            sequence = (sequence + 1) & 0xFFFF
        _collect(list(pingers.values()), lambda: not silent(), min(end, time.monotonic() + again))
        again *= 2
    answers = [_first(pingers[netns], asked[index]) for index, (netns, _) in enumerate(pairs)]
    for pinger in pingers.values():
        pinger.sock.close()
    return answers


def _first(pinger: _Pinger, sequences: Sequence[int]) -> float | None:
    return next((pinger.answered[sequence] for sequence in sequences if sequence in pinger.answered), None)


def _collect(pingers: Sequence[_Pinger], done: Callable[[], bool], end: float) -> None:
    """Take answers until `end`, or until `done`."""
    poll = select.poll()
    by_fd = {pinger.sock.fileno(): pinger for pinger in pingers}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    while not done() and (left := end - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            by_fd[fd].receive()
