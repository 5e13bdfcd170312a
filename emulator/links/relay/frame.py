"""A frame as a TAP gives it: virtio-net header, Ethernet header, packet. Super-packets can be cut into smaller ones.

Layout: virtio-net header (flags, gso_type, hdr_len, gso_size, csum_start, csum_offset: BBHHHH, 10 bytes, the host's
byte order), Ethernet (14 bytes), IPv4, TCP. A TCP super-packet carries `gso_size` bytes in each of its packets.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.links.model import Uniform

VNET = 10
ETHERNET = 14
#: where the IP packet begins
IP = VNET + ETHERNET
GSO_NONE = 0
_NEEDS_CHECKSUM = 0x01
_FIN, _PSH, _CWR = 0x01, 0x08, 0x80
_SHORT, _PAIR, _LONG = struct.Struct("!H"), struct.Struct("!HH"), struct.Struct("!I")
_host_pair = struct.Struct("=HH")
_gso_size = struct.Struct("=H").unpack_from


class SuperPacket:
    """A TCP super-packet: how many packets it stands for, and any run of them as a frame of its own."""

    __slots__ = ("_data", "_headers", "_ident", "_ip_sum", "_length", "_pseudo", "_sequence", "_tcp", "mss", "packets")

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self.mss: int = _gso_size(data, 4)[0]
        self._tcp = tcp = IP + (data[IP] & 15) * 4
        self._headers = tcp + (data[tcp + 12] >> 4) * 4
        self.packets = max(1, -(-(len(data) - self._headers) // self.mss))
        words = struct.unpack_from(f"!{(tcp - IP) // 2}H", data, IP)
        self._length, self._ident = words[1], words[2]
        # Sums without the words that each run has its own of (RFC 1071: they may be added in any order).
        self._ip_sum = sum(words) - words[1] - words[2] - words[5]
        self._sequence = _LONG.unpack_from(data, tcp + 4)[0]
        self._pseudo = _SHORT.unpack_from(data, tcp + 16)[0] + 0xFFFF - self._length

    def ip_bytes(self, first: int, count: int) -> int:
        """IP bytes of `count` packets from the `first` on, each with its own headers."""
        payload = min(len(self._data) - self._headers, (first + count) * self.mss) - first * self.mss
        return payload + count * (self._headers - IP)

    def run(self, first: int, count: int) -> bytearray:
        """Packets `first` to `first + count` as one frame, a super-packet again if they are more than one."""
        tcp = self._tcp
        begin = self._headers + first * self.mss
        payload = self._data[begin : begin + count * self.mss]
        frame = bytearray(self._data[: self._headers])
        length, ident = self._headers - IP + len(payload), (self._ident + first) & 0xFFFF
        _PAIR.pack_into(frame, IP + 2, length, ident)
        _SHORT.pack_into(frame, IP + 10, 0xFFFF - _fold(self._ip_sum + length + ident))
        _LONG.pack_into(frame, tcp + 4, (self._sequence + first * self.mss) & 0xFFFFFFFF)
        # The checksum field holds the pseudo-header's sum, in which the TCP length has changed.
        _SHORT.pack_into(frame, tcp + 16, _fold(self._pseudo + length))
        # What the kernel told here is how much of the whole lay in one piece; it refuses a frame shorter than that.
        _host_pair.pack_into(frame, 2, self._headers - VNET, self.mss)
        if len(payload) <= self.mss:
            frame[1] = GSO_NONE
            frame[2:6] = bytes(4)
        if first + count < self.packets:
            frame[tcp + 13] &= ~(_FIN | _PSH) & 0xFF
        if first:
            frame[tcp + 13] &= ~_CWR & 0xFF
        frame += payload
        return frame


def measure(data: bytes) -> tuple[int, int]:
    """The packets that a super-packet stands for, and their IP bytes with each one's headers."""
    tcp = IP + (data[IP] & 15) * 4
    headers = tcp + (data[tcp + 12] >> 4) * 4
    packets: int = -(-(len(data) - headers) // _gso_size(data, 4)[0]) or 1
    return packets, len(data) - headers + packets * (headers - IP)


def corrupted(data: bytes | bytearray, rng: Uniform) -> bytearray:
    """The frame of one packet with one bit of its IP packet turned over, as its receiver's checksum then finds."""
    frame = bytearray(data)
    flags = frame[0]
    if flags & _NEEDS_CHECKSUM:
        start, offset = _host_pair.unpack_from(frame, 6)
        _complete(frame, VNET + start, VNET + start + offset)
        frame[0] = flags & ~_NEEDS_CHECKSUM
    bit = int(rng.random() * 8 * (len(frame) - IP))
    frame[IP + bit // 8] ^= 1 << bit % 8
    return frame


def _complete(frame: bytearray, start: int, field: int) -> None:
    """Put in the checksum of what begins at `start`; the field holds the pseudo-header's sum (RFC 1071)."""
    covered = frame[start:]
    words = struct.unpack(f"!{(len(covered) + 1) // 2}H", covered + bytes(len(covered) % 2))
    _SHORT.pack_into(frame, field, (0xFFFF - _fold(sum(words))) or 0xFFFF)


def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
