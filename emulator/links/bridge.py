"""Making a switch's bridge by one netlink message, written here because importing an encoder costs 0.2 s.

No spanning tree, no multicast snooping (it would hold groups back until a querier speaks), no VLANs. Addresses
are learnt and kept for a day. Numbers are from the kernel's uapi headers (netlink.h, rtnetlink.h, if_link.h).
"""

from __future__ import annotations

import os
import socket
import struct

RTM_NEWLINK, NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 16, 0x1, 0x4, 0x200, 0x400
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND, IFLA_INFO_DATA = 3, 18, 1, 2
IFLA_BR_FORWARD_DELAY, IFLA_BR_AGEING_TIME, IFLA_BR_STP_STATE, IFLA_BR_MCAST_SNOOPING = 1, 4, 5, 23
NLMSG_ERROR = 2
#: the kernel's centiseconds in a day
_DAY = 24 * 3600 * 100


def _attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def create(bridge: str) -> None:
    """Make a bridge, down and without ports, in the thread's namespace; raises OSError."""
    data = (
        _attribute(IFLA_BR_FORWARD_DELAY, struct.pack("=I", 0))
        + _attribute(IFLA_BR_AGEING_TIME, struct.pack("=I", _DAY))
        + _attribute(IFLA_BR_STP_STATE, struct.pack("=I", 0))
        + _attribute(IFLA_BR_MCAST_SNOOPING, b"\0")
    )
    info = _attribute(IFLA_INFO_KIND, b"bridge") + _attribute(IFLA_INFO_DATA, data)
    body = bytes(16) + _attribute(IFLA_IFNAME, bridge.encode() + b"\0") + _attribute(IFLA_LINKINFO, info)
    _request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body)


def _request(kind: int, flags: int, body: bytes) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as sock:
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
        reply = sock.recv(4096)
    if struct.unpack_from("=H", reply, 4)[0] == NLMSG_ERROR:
        number = -struct.unpack_from("=i", reply, 16)[0]
        if number:
            raise OSError(number, os.strerror(number))
