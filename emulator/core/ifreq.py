"""Interface requests by ioctl: a few microseconds each, and nothing to import (netlink's encoder costs 0.2 s).

Numbers and layouts are from the kernel's uapi headers (sockios.h, if.h, route.h, if_arp.h, if_bridge.h).
"""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network

SIOCADDRT, SIOCGIFFLAGS, SIOCSIFFLAGS = 0x890B, 0x8913, 0x8914
SIOCGIFADDR, SIOCSIFADDR, SIOCSIFNETMASK = 0x8915, 0x8916, 0x891C
SIOCSIFMTU, SIOCSIFHWADDR, SIOCGIFHWADDR, SIOCGIFINDEX = 0x8922, 0x8924, 0x8927, 0x8933
SIOCSARP, SIOCBRADDIF = 0x8955, 0x89A2

IFF_UP, IFF_RUNNING = 0x1, 0x40
RTF_UP, RTF_GATEWAY = 0x1, 0x2
ATF_COM, ATF_PERM = 0x02, 0x04
ARPHRD_ETHER = 1


def handle() -> socket.socket:
    """A socket to make requests on, of the namespace that the thread is in; the caller closes it."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)


def _name(interface: str) -> bytes:
    return interface.encode().ljust(16, b"\0")


def _address(address: IPv4Address | None) -> bytes:
    packed = b"\0\0\0\0" if address is None else address.packed
    return struct.pack("=HH4s8x", socket.AF_INET, 0, packed)


def mac_bytes(mac: str) -> bytes:
    """ "02:00:..." as six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def set_mac(sock: socket.socket, interface: str, mac: str) -> None:
    """Give an interface its hardware address."""
    fcntl.ioctl(sock, SIOCSIFHWADDR, _name(interface) + struct.pack("=H6s8x", ARPHRD_ETHER, mac_bytes(mac)))


def mac_of(sock: socket.socket, interface: str) -> str:
    """An interface's hardware address."""
    return fcntl.ioctl(sock, SIOCGIFHWADDR, _name(interface) + bytes(16))[18:24].hex(":")


def set_mtu(sock: socket.socket, interface: str, mtu: int) -> None:
    """Set the largest IP packet."""
    fcntl.ioctl(sock, SIOCSIFMTU, _name(interface) + struct.pack("=i12x", mtu))


def set_up(sock: socket.socket, interface: str) -> None:
    """Bring an interface up."""
    fcntl.ioctl(sock, SIOCSIFFLAGS, _name(interface) + struct.pack("=H14x", IFF_UP))


def set_down(sock: socket.socket, interface: str) -> None:
    """Take an interface down; its routes go with that."""
    fcntl.ioctl(sock, SIOCSIFFLAGS, _name(interface) + struct.pack("=H14x", 0))


def flags_of(sock: socket.socket, interface: str) -> int:
    """IFF_UP and the like; raises OSError (ENODEV) when there is no such interface."""
    return int(struct.unpack_from("=H", fcntl.ioctl(sock, SIOCGIFFLAGS, _name(interface) + bytes(16)), 16)[0])


def set_address(sock: socket.socket, interface: str, address: IPv4Address, netmask: IPv4Address) -> None:
    """Give an interface its IPv4 address; the kernel adds the subnet's route."""
    fcntl.ioctl(sock, SIOCSIFADDR, _name(interface) + _address(address))
    fcntl.ioctl(sock, SIOCSIFNETMASK, _name(interface) + _address(netmask))


def address_of(sock: socket.socket, interface: str) -> bytes:
    """An interface's IPv4 address, packed."""
    return fcntl.ioctl(sock, SIOCGIFADDR, _name(interface) + bytes(16))[20:24]


def add_route(sock: socket.socket, destination: IPv4Network, via: IPv4Address) -> None:
    """Add a static route through a gateway that is directly connected."""
    # struct rtentry of 64-bit Linux (120 bytes); metric, device and MTU stay unset
    request = struct.pack(
        "=8x16s16s16sH62x",
        _address(destination.network_address),
        _address(via),
        _address(destination.netmask),
        RTF_UP | RTF_GATEWAY,
    )
    fcntl.ioctl(sock, SIOCADDRT, request)


def add_neighbour(sock: socket.socket, interface: str, address: IPv4Address, mac: str) -> None:
    """Add a permanent neighbour entry, so that no packet waits for a look-up."""
    hardware = struct.pack("=H6s8x", ARPHRD_ETHER, mac_bytes(mac))
    request = _address(address) + hardware + struct.pack("=i", ATF_COM | ATF_PERM) + bytes(16) + _name(interface)
    fcntl.ioctl(sock, SIOCSARP, request)


def add_port(sock: socket.socket, bridge: str, interface: str) -> None:
    """Make an interface a port of a bridge."""
    index = fcntl.ioctl(sock, SIOCGIFINDEX, _name(interface) + bytes(16))[16:20]
    fcntl.ioctl(sock, SIOCBRADDIF, _name(bridge) + index + bytes(12))
