"""A frame as a TAP gives it: virtio-net header, Ethernet header, packet. Super-packets can be cut into smaller ones.

Layout: virtio-net header (flags, gso_type, hdr_len, gso_size, csum_start, csum_offset: BBHHHH, 10 bytes, the host's
byte order), Ethernet (14 bytes), IPv4, TCP. A TCP super-packet carries `gso_size` bytes in each of its packets.
"""

from __future__ import annotations

import struct

VNET = 10
ETHERNET = 14
LINK_HEADERS = VNET + ETHERNET
GSO_NONE, GSO_TCPV4, GSO_ECN = 0, 1, 0x80
_FIN, _PSH, _CWR = 0x01, 0x08, 0x80
_TEN = struct.Struct("!10H")
_gso_size = struct.Struct("=H").unpack_from


class SuperPacket:
    """A TCP super-packet: how many packets it stands for, and any run of them as a frame of its own."""

    __slots__ = ("_data", "_headers", "_ip", "_tcp", "mss", "packets")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.mss: int = _gso_size(data, 4)[0]
        self._ip = LINK_HEADERS
        self._tcp = self._ip + (data[self._ip] & 15) * 4
        self._headers = self._tcp + (data[self._tcp + 12] >> 4) * 4
        self.packets = max(1, -(-(len(data) - self._headers) // self.mss))

    def ip_bytes(self, first: int, count: int) -> int:
        """IP bytes of `count` packets from the `first` on, each with its own headers."""
        payload = min(len(self._data) - self._headers, (first + count) * self.mss) - first * self.mss
        return payload + count * (self._headers - LINK_HEADERS)

    def run(self, first: int, count: int) -> bytes:
        """Packets `first` to `first + count` as one frame, a super-packet again if they are more than one."""
        data, ip, tcp = self._data, self._ip, self._tcp
        if first == 0 and count >= self.packets:
            return data
        begin = self._headers + first * self.mss
        payload = data[begin : begin + count * self.mss]
        head = bytearray(data[: self._headers])
        if len(payload) <= self.mss:
            head[1] = GSO_NONE
            head[4:6] = b"\0\0"
        length = self._headers - ip + len(payload)
        before = int.from_bytes(head[ip + 2 : ip + 4], "big")
        head[ip + 2 : ip + 4] = length.to_bytes(2, "big")
        head[ip + 4 : ip + 6] = ((int.from_bytes(head[ip + 4 : ip + 6], "big") + first) & 0xFFFF).to_bytes(2, "big")
        self._sum_ip(head)
        sequence = int.from_bytes(head[tcp + 4 : tcp + 8], "big") + first * self.mss
        head[tcp + 4 : tcp + 8] = (sequence & 0xFFFFFFFF).to_bytes(4, "big")
        if first + count < self.packets:
            head[tcp + 13] &= ~(_FIN | _PSH) & 0xFF
        if first:
            head[tcp + 13] &= ~_CWR & 0xFF
        # The checksum field holds the pseudo-header's sum, in which the TCP length has changed.
        pseudo = int.from_bytes(head[tcp + 16 : tcp + 18], "big") + length + (0xFFFF - before)
        head[tcp + 16 : tcp + 18] = _fold(pseudo).to_bytes(2, "big")
        return bytes(head) + payload

    def _sum_ip(self, head: bytearray) -> None:
        ip = self._ip
        head[ip + 10 : ip + 12] = b"\0\0"
        total = sum(_TEN.unpack_from(head, ip))
        for offset in range(ip + 20, self._tcp, 2):
            total += (head[offset] << 8) + head[offset + 1]
        head[ip + 10 : ip + 12] = (0xFFFF - _fold(total)).to_bytes(2, "big")


def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
