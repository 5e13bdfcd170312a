"""What makes a namespace with cables a node of the network: addresses, routes, neighbours, forwarding, bridge.

Everything is static, so no packet ever waits for a look-up, and everything is read back.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from emulator.core import ifreq, linux
from emulator.core.errors import LinkError
from emulator.links import bridge
from emulator.links.netns import travelling

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from emulator.core.plan import NodePlan

#: the bridge in a switch's namespace; its ports are named by the Plan
BRIDGE = "br0"
_PROC = "/proc/sys/net"
_QUIET = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
#: The kernel's own limit of 4 MiB of unacknowledged data would hold 4 MB in flight to two thirds of the line's rate.
_BUFFERS = (("ipv4/tcp_wmem", "4096 16384 16777216"), ("ipv4/tcp_rmem", "4096 131072 33554432"))


def configure(netns: str, node: NodePlan) -> None:
    """Configure one node whose cables are plugged in; raises LinkError with what the kernel refused."""
    configure_all([(netns, node)])


def configure_all(pairs: Iterable[tuple[str, NodePlan]]) -> None:
    """Configure many nodes, given with the paths of their namespaces (100 nodes take about 0.05 s)."""
    with travelling() as go:
        for netns, node in pairs:
            go(netns)
            step = "preparing"
            try:
                with ifreq.handle() as sock:
                    for step, act in _STEPS:  # noqa: B007 - named in the error
                        act(sock, node)
            except OSError as error:
                raise LinkError(
                    f"the network cannot be configured: {step}: {error.strerror}",
                    where=f"node {node.name}",
                    fix="take the lab down with `emu down` and start it again",
                ) from None


def write_sysctl(key: str, value: str) -> None:
    """Set a sysctl of the thread's namespace by its path below net/; raises OSError."""
    try:
        descriptor = os.open(f"{_PROC}/{key}", os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        # A container's own view, where nodes are made from one; the sysctls of its host stay as they are.
        linux.mount("none", "/proc/sys", flags=linux.MS_BIND | linux.MS_REMOUNT | _QUIET)
        descriptor = os.open(f"{_PROC}/{key}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def ipv6_off(scope: str = "all") -> None:
    """No IPv6 in the thread's namespace ("default": on interfaces made later); a kernel without it is as well."""
    with suppress(FileNotFoundError):
        write_sysctl(f"ipv6/conf/{scope}/disable_ipv6", "1")


def _system(sock: socket.socket, node: NodePlan) -> None:
    ipv6_off()
    ifreq.set_up(sock, "lo")
    if node.kind == "host":
        for key, value in _BUFFERS:
            write_sysctl(key, value)
    if node.kind == "router":
        write_sysctl("ipv4/ip_forward", "1")
        for scope in ("all", "default", *(port.name for port in node.interfaces)):
            write_sysctl(f"ipv4/conf/{scope}/rp_filter", "0")
        write_sysctl("ipv4/conf/all/send_redirects", "0")


def _bridge(sock: socket.socket, node: NodePlan) -> None:
    if node.kind == "switch":
        bridge.create(BRIDGE)
        for port in node.interfaces:
            ifreq.add_port(sock, BRIDGE, port.name)
        ifreq.set_up(sock, BRIDGE)


def _addresses(sock: socket.socket, node: NodePlan) -> None:
    for port in node.interfaces:
        if port.address is not None:
            ifreq.set_address(sock, port.name, port.address.ip, port.address.netmask)


def _neighbours(sock: socket.socket, node: NodePlan) -> None:
    for port in node.interfaces:
        for neighbour in port.neighbours:
            ifreq.add_neighbour(sock, port.name, neighbour.address, neighbour.mac)


def _routes(sock: socket.socket, node: NodePlan) -> None:
    for route in node.routes:
        ifreq.add_route(sock, route.destination, route.via)


def _check(sock: socket.socket, node: NodePlan) -> None:
    """Read back: each interface up with its MAC and address, and as many routes as set."""
    for port in node.interfaces:
        if not ifreq.flags_of(sock, port.name) & ifreq.IFF_UP:
            raise OSError(0, f"{port.name} is not up")
        if ifreq.mac_of(sock, port.name) != port.mac.lower():
            raise OSError(0, f"{port.name} has another MAC address than {port.mac}")
        if port.address is not None and ifreq.address_of(sock, port.name) != port.address.ip.packed:
            raise OSError(0, f"{port.name} has another address than {port.address}")
    if node.routes:
        with open("/proc/thread-self/net/route", "rb") as file:
            # RTF_UP | RTF_GATEWAY, with RTF_HOST where the route is for a single address
            gateways = sum(line.split()[3] in (b"0003", b"0007") for line in file)
        if gateways != len(set(node.routes)):
            raise OSError(0, f"{gateways} routes instead of {len(node.routes)}")


_STEPS = (
    ("system settings", _system),
    ("bridge", _bridge),
    ("addresses", _addresses),
    ("neighbours", _neighbours),
    ("routes", _routes),
    ("reading back", _check),
)
