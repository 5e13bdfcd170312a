"""Two namespaces and raw frames between them, for tests of cables: no addresses, no TCP, nothing that retries."""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from emulator.core import linux
from emulator.core.plan import Impairment
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links.base import Cable, CableEnd
from emulator.links.netem_hub import create, in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: an Ethernet type reserved for experiments (IEEE 802)
_TYPE = 0x88B5
_HEADER = 14
#: SO_SNDBUFFORCE and SO_RCVBUFFORCE, which Python does not name
_BUFFERS_BY_FORCE = (32, 33)
_TIMESTAMPNS = 35


class Frame(NamedTuple):
    """A frame that came in: when (the kernel's stamp), the number in it, and its bytes without the header."""

    at: float
    number: int
    nbytes: int


@contextmanager
def namespaces(directory: Path, count: int = 2) -> Iterator[list[Path]]:
    """Fresh network namespaces, held by mounts in `directory`."""
    paths = [directory / f"ns{number}" for number in range(count)]
    try:
        for path in paths:
            create(path)
        yield paths
    finally:
        for path in paths:
            if path.exists():
                linux.umount(str(path))
                path.unlink()


def impairment(
    rate: float | None = None,
    *,
    delay: float = 0,
    jitter: float = 0,
    loss: float = 0,
    queue: int = 1 << 20,
    over: int = 0,
) -> Impairment:
    """An impairment from plain numbers."""
    limit = None if rate is None else Rate(rate)
    return Impairment(limit, Delay(delay), Delay(jitter), Share(loss), Size(queue), over)


def cable(paths: list[Path], a_to_b: Impairment, b_to_a: Impairment, number: int = 0) -> Cable:
    """A cable between the first two namespaces."""
    ends = [
        CableEnd(side, str(path), f"eth{number}", f"02:00:00:{side}{number % 16:x}:00:{number % 251:02x}")
        for side, path in zip("ab", paths, strict=False)
    ]
    return Cable(f"link-{number}", ends[0], ends[1], a_to_b, b_to_a)


@contextmanager
def sockets(paths: list[Path]) -> Iterator[list[socket.socket]]:
    """A raw socket on eth0 of each namespace."""
    with ExitStack() as stack:
        yield [stack.enter_context(_socket(path)) for path in paths]


def _socket(path: Path) -> socket.socket:

    def work() -> socket.socket:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            linux.setns(descriptor, linux.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_TYPE))
        made.bind(("eth0", _TYPE))
        made.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        for option in _BUFFERS_BY_FORCE:
            made.setsockopt(socket.SOL_SOCKET, option, 1 << 24)
        return made

    return in_thread(work)


def send(sender: socket.socket, nbytes: int, count: int = 1, gap: float = 0.0) -> list[float]:
    """Send frames of `nbytes` without the header, numbered from 0; returns when each was handed in."""
    times = []
    for number in range(count):
        head = b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x01" + struct.pack("!HI", _TYPE, number)
        times.append(time.clock_gettime(time.CLOCK_REALTIME))
        sender.send(head.ljust(nbytes + _HEADER, b"\0"))
        if gap:
            time.sleep(gap)
    return times


def receive(receiver: socket.socket, count: int, timeout: float) -> list[Frame]:
    """Up to `count` frames, until none comes for `timeout` seconds."""
    frames = []
    receiver.settimeout(timeout)
    for _ in range(count):
        try:
            data, control, _, _ = receiver.recvmsg(70_000, 64)
        except TimeoutError:
            break
        seconds, nanoseconds = struct.unpack_from("=qq", control[0][2])
        frames.append(
            Frame(seconds + nanoseconds / 1e9, struct.unpack_from("!I", data, _HEADER)[0], len(data) - _HEADER)
        )
    return frames
