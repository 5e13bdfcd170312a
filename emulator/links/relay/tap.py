"""TAP devices: made persistent, so that addresses, routes and neighbours outlive the process that reads them.

Every packet comes with a virtio-net header (linux/virtio_net.h), in which the kernel leaves segmentation and
checksums to us: super-packets of up to 64 KiB pass whole. Numbers are from linux/if_tun.h.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import TYPE_CHECKING

from emulator.core import ifreq
from emulator.core.errors import LinkError
from emulator.links.network import ipv6_off

if TYPE_CHECKING:
    from emulator.links.base import CableEnd

DEVICE = "/dev/net/tun"
TUNSETIFF, TUNSETPERSIST, TUNSETOFFLOAD = 0x400454CA, 0x400454CB, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4 = 0x1, 0x2


def attach(interface: str) -> int:
    """Make the TAP device in the thread's namespace, or take up one that is there; returns its descriptor.

    Raises OSError: EBUSY when another process holds it, EINVAL when the name is that of another kind of device.
    """
    descriptor = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("=16sH22x", interface.encode(), flags))
        fcntl.ioctl(descriptor, TUNSETPERSIST, 1)
        fcntl.ioctl(descriptor, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def make(end: CableEnd, mtu: int) -> int:
    """Make a cable's end in the thread's namespace, with its MAC and MTU, up; returns its descriptor."""
    ipv6_off("default")
    descriptor = attach(end.interface)
    with ifreq.handle() as sock:
        ifreq.set_mac(sock, end.interface, end.mac)
        ifreq.set_mtu(sock, end.interface, mtu)
        ifreq.set_up(sock, end.interface)
    return descriptor


def take_up(end: CableEnd) -> int:
    """The descriptor of a cable's end that `make` made; raises LinkError where it is not in the thread's namespace."""
    with ifreq.handle() as sock:
        try:
            found = ifreq.mac_of(sock, end.interface)
        except OSError:
            found = ""
    if found != end.mac:
        raise LinkError(
            f"the interface {end.interface} is gone",
            where=f"node {end.node}",
            fix="take the lab down with `emu down` and start it again",
        )
    return attach(end.interface)


def stand_in() -> int:
    """A descriptor in place of a TAP that is gone: nothing ever comes from it."""
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def doom(interface: str) -> int | None:
    """Take a TAP's persistence away, so that closing the returned descriptor removes it; None if there is none."""
    with ifreq.handle() as sock:
        try:
            ifreq.flags_of(sock, interface)
        except OSError:
            return None
    descriptor = attach(interface)
    fcntl.ioctl(descriptor, TUNSETPERSIST, 0)
    return descriptor
