"""Just enough of rtnetlink for the netem driver: messages as bytes, sent in batches, each acknowledged.

pyroute2's encoder lacks the 64-bit rates and delays that the kernel takes, and importing it costs more than the
quarter of a second that a whole lab's cables take; so these few messages are written here. Numbers and layouts are
from the kernel's uapi headers (netlink.h, rtnetlink.h, if_link.h).
"""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEWLINK, DELLINK, GETLINK = 16, 17, 18
NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
NEWTFILTER = 44
GETACTION = 50

_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
REPLACE, EXCLUSIVE, CREATE = 0x100, 0x200, 0x400
_ERROR, _DONE = 2, 3
_NESTED = 0x8000
_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_EXT_ACK_FLAG = 0x200
#: messages sent before their acknowledgements are read; all of those must fit the socket's buffer
_BATCH = 64
_BUFFER = 1 << 20


class NetlinkError(OSError):
    """The kernel refused a message; `label` says which one."""

    def __init__(self, number: int, detail: str, label: str) -> None:
        super().__init__(number, detail or os.strerror(number))
        self.label = label


class Message(NamedTuple):
    """A request: its type, flags beside REQUEST, body, and what to call it in an error."""

    kind: int
    flags: int
    body: bytes
    label: str


def attribute(kind: int, *values: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    value = b"".join(values)
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def nested(kind: int, *values: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | _NESTED, *values)


def text(kind: int, value: str) -> bytes:
    """An attribute that holds a zero-ended string."""
    return attribute(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    """An attribute that holds a 32-bit number."""
    return attribute(kind, struct.pack("=I", value))


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes in `data`, without their flags."""
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind & 0x3FFF, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


class Netlink:
    """A route netlink socket, in the network namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        for option in (_CAP_ACK, _EXT_ACK):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, messages: Sequence[Message]) -> None:
        """Have the kernel carry out all messages, in order. Raises NetlinkError for the first that it refuses.

        Those of one batch that come after a refused one are carried out all the same.
        """
        for start in range(0, len(messages), _BATCH):
            self._send_batch(messages[start : start + _BATCH])

    def _send_batch(self, messages: Sequence[Message]) -> None:
        first = self._sequence + 1
        self._socket.send(b"".join(self._pack(message, _ACK) for message in messages))
        refused: NetlinkError | None = None
        waiting = len(messages)
        while waiting:
            for kind, flags, sequence, body in self._receive():
                if kind != _ERROR or not first <= sequence <= self._sequence:
                    continue
                waiting -= 1
                number = -struct.unpack_from("=i", body)[0]
                if number and refused is None:
                    refused = NetlinkError(number, _reason(flags, body), messages[sequence - first].label)
        if refused is not None:
            raise refused

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """The bodies of all answers to a dump request."""
        self._socket.send(self._pack(Message(kind, 0, body, "dump"), _DUMP))
        answers: list[bytes] = []
        while True:
            for answer, flags, sequence, data in self._receive():
                if sequence != self._sequence:
                    continue
                if answer == _DONE:
                    return answers
                if answer == _ERROR:
                    raise NetlinkError(-struct.unpack_from("=i", data)[0], _reason(flags, data), f"dump {kind}")
                answers.append(data)

    def _pack(self, message: Message, flags: int) -> bytes:
        self._sequence += 1
        header = (len(message.body) + 16, message.kind, _REQUEST | flags | message.flags, self._sequence, 0)
        return struct.pack("=IHHII", *header) + message.body + bytes(-len(message.body) % 4)

    def _receive(self) -> Iterator[tuple[int, int, int, bytes]]:
        data = self._socket.recv(_BUFFER)
        offset = 0
        while offset + 16 <= len(data):
            length, kind, flags, sequence, _ = struct.unpack_from("=IHHII", data, offset)
            yield kind, flags, sequence, data[offset + 16 : offset + length]
            offset += (length + 3) & ~3


def _reason(flags: int, body: bytes) -> str:
    """The kernel's own words about an error, where it has any."""
    if not flags & _EXT_ACK_FLAG:
        return ""
    # The error number is followed by the header of the refused message (with _CAP_ACK, no more of it).
    found = dict(attributes(body[20:]))
    return found.get(1, b"").rstrip(b"\0").decode(errors="replace")
