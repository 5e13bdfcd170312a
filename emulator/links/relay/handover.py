"""Passing the TAPs' descriptors from the driver to the supervisor: messages of some each, the last one says "end"."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: descriptors in one message; the kernel takes 253
BATCH = 200


def receive_descriptors(channel: socket.socket) -> list[int] | None:
    """All TAPs, in order; None when the driver has gone before it could send them."""
    taps: list[int] = []
    while True:
        text, descriptors, _, _ = socket.recv_fds(channel, 16, BATCH)
        if not text:
            return None
        taps += descriptors
        if text == b"end":
            return taps


def send_descriptors(channel: socket.socket, taps: Sequence[int]) -> None:
    """The driver's end of `receive_descriptors`."""
    for start in range(0, max(1, len(taps)), BATCH):
        last = start + BATCH >= len(taps)
        socket.send_fds(channel, [b"end" if last else b"more"], taps[start : start + BATCH])
