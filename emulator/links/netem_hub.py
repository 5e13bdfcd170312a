"""The hub of a lab: a network namespace of its own, held by a mounted file, in which all cables of the lab meet.

A cable is three veth pairs, joined by redirecting what comes in (the devices of cable 3, A's side on the left):

    A: eth0 = hub~3a  ->  hub~3x = hub~3y  ->  hub~3b = eth0 :B        (and the same way back)
                       netem > tbf           netem

Nodes hold no queueing discipline, and nothing in the hub has an address, learns, or speaks.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from typing import TYPE_CHECKING, TypeVar

from emulator.core import linux
from emulator.links import netem_netlink as nl
from emulator.links.netem_line import below, gate, netem, queue, tbf
from emulator.links.network import ipv6_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.links.base import Cable, CableEnd
    from emulator.links.netem_line import Line

T = TypeVar("T")

#: the group of all devices that a hub holds, by which they are removed together
_GROUP = 0x656D
_UP = 1
_ROOT, _INGRESS, _INGRESS_HANDLE = 0xFFFFFFFF, 0xFFFFFFF1, 0xFFFF0000
#: where a qdisc stands below the one at the root, and below that
CHILD, GRANDCHILD = 0x10001, 0x20001
_ALL_PACKETS = 0x0300  # ETH_P_ALL in network order
_IFNAME, _MTU, _ADDRESS, _LINKINFO, _GROUP_ATTRIBUTE, _NETNS_FD, _GSO_MAX_SEGS = 3, 4, 1, 18, 27, 28, 40
_REDIRECT, _STOLEN = 1, 4
#: where what comes in by a port or line device goes out
REDIRECTS = {"a": "x", "y": "b", "b": "y", "x": "a"}


def device(index: int, part: str) -> str:
    """The name of a device of cable `index`: port a or b, line end x (A's side) or y; no Plan has such a name."""
    return f"hub~{index}{part}"


def action(index: int, part: str) -> int:
    """The number of the redirection of what comes in by that device."""
    return 4 * index + "abxy".index(part) + 1


def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own, which may change its network namespace and takes that with it."""
    result: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]


def create(path: Path) -> None:
    """Make the hub and hold it by a mount at `path`. Raises OSError."""

    def work() -> None:
        linux.unshare(linux.CLONE_NEWNET)
        ipv6_off("all")
        ipv6_off("default")
        linux.mount("/proc/thread-self/ns/net", str(path), flags=linux.MS_BIND)

    path.touch()
    in_thread(work)


def connect(path: Path) -> nl.Netlink:
    """A netlink socket in the hub. Raises FileNotFoundError or OSError (EINVAL) where no hub is held."""

    def work() -> nl.Netlink:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.setns(descriptor, linux.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        return nl.Netlink()

    return in_thread(work)


def destroy(path: Path) -> bool:
    """Remove the hub with all devices in it, and with them their ends in the nodes; False where there was none."""
    try:
        with connect(path) as hub:
            hub.send([nl.Message(nl.DELLINK, 0, _link() + nl.u32(_GROUP_ATTRIBUTE, _GROUP), "the hub's devices")])
    except FileNotFoundError:
        return False
    except nl.NetlinkError as error:
        if error.errno != errno.ENODEV:  # it holds none
            raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file over which nothing was mounted yet
            raise
    held = os.path.realpath(path) in _mounted()
    if held:
        linux.umount(str(path))
    path.unlink()
    return held


def _mounted() -> set[str]:
    with open("/proc/self/mountinfo") as file:
        return {line.split()[4].replace("\\040", " ") for line in file}


def indices(hub: nl.Netlink) -> dict[str, int]:
    """The number of each device in the hub, by name."""
    return {name: index for name, (index, _, _) in links(hub).items()}


def links(hub: nl.Netlink) -> dict[str, tuple[int, int, int]]:
    """Each device in the hub: its number, flags, and the packets that it could not hand on."""
    found = {}
    for body in hub.dump(nl.GETLINK, _link()):
        _, _, index, flags, _ = struct.unpack_from("=BxHiII", body)
        answer = dict(nl.attributes(body[16:]))
        # rtnl_link_stats64 begins with rx and tx packets, bytes and errors, and dropped.
        dropped = struct.unpack_from("=8Q", answer[23])[7]
        found[answer[_IFNAME].rstrip(b"\0").decode()] = (index, flags, dropped)
    return found


def _link(index: int = 0, flags: int = 0) -> bytes:
    return struct.pack("=BxHiII", 0, 0, index, flags, flags)


def plug(index: int, cable: Cable, namespaces: Mapping[str, int]) -> list[nl.Message]:
    """The messages that make the three pairs of a cable; ends in the nodes are up, devices in the hub down."""
    return [
        _end(cable.name, cable.a, device(index, "a"), cable.mtu, namespaces),
        _end(cable.name, cable.b, device(index, "b"), cable.mtu, namespaces),
        _pair(f"the line of {cable.name}", _link(), _line(index, "x", cable.mtu), _line(index, "y", cable.mtu)),
    ]


def _end(cable: str, end: CableEnd, port: str, mtu: int, namespaces: Mapping[str, int]) -> nl.Message:
    mac = bytes.fromhex(end.mac.replace(":", ""))
    own = nl.text(_IFNAME, end.interface) + nl.attribute(_ADDRESS, mac) + nl.u32(_MTU, mtu)
    # Packets leave a node one by one: netem would lose and delay a super-packet as one, and before 6.13 it loses
    # count of what a tbf below it cuts up, until it passes nothing (CVE-2024-56770).
    own += nl.u32(_NETNS_FD, namespaces[end.netns]) + nl.u32(_GSO_MAX_SEGS, 1)
    peer = nl.text(_IFNAME, port) + nl.u32(_MTU, mtu) + nl.u32(_GROUP_ATTRIBUTE, _GROUP)
    return _pair(f"{end.interface} of {end.node} (link {cable})", _link(flags=_UP), own, peer)


def _line(index: int, part: str, mtu: int) -> bytes:
    return nl.text(_IFNAME, device(index, part)) + nl.u32(_MTU, mtu) + nl.u32(_GROUP_ATTRIBUTE, _GROUP)


def _pair(label: str, header: bytes, own: bytes, peer: bytes) -> nl.Message:
    data = nl.nested(2, nl.nested(1, _link(), peer))
    info = nl.nested(_LINKINFO, nl.text(1, "veth"), data)
    return nl.Message(nl.NEWLINK, nl.CREATE | nl.EXCLUSIVE, header + own + info, label)


def shape(
    index: int, numbers: Mapping[str, int], lines: tuple[Line, Line], name: str, before: tuple[Line, Line] | None = None
) -> list[nl.Message]:
    """The messages that set both directions of a cable (a to b, b to a), or set them anew where `before` is given.

    What is queued is kept, but where the queue becomes one of another kind or order is kept no more or again.
    """
    messages = []
    for way, (line, port) in enumerate((("x", "b"), ("y", "a"))):
        settings, was = lines[way], before[way] if before else None
        number, out = numbers[device(index, line)], numbers[device(index, port)]
        messages += [
            qdisc(number, gate(settings), f"the gate of {name}"),
            qdisc(number, tbf(settings), f"rate and queue of {name}", CHILD),
        ]
        if settings.queued[0] != "bfifo" or (was and was.queued[0] != "bfifo"):
            messages.append(qdisc(number, queue(settings), f"the queue of {name}", GRANDCHILD))
        messages.append(qdisc(out, netem(settings), f"delay and loss of {name}"))
        if settings.reorder:
            messages.append(qdisc(out, below(settings), f"reordering of {name}", CHILD))
        elif was and was.reorder:
            messages.append(nl.Message(nl.DELQDISC, 0, _tc(out, 0, CHILD), f"reordering of {name}"))
    return messages


def join(index: int, numbers: Mapping[str, int], name: str) -> list[nl.Message]:
    """The messages that let packets through a cable: redirections, and the devices up."""
    messages = []
    for part, target in REDIRECTS.items():
        number = numbers[device(index, part)]
        messages.append(ingress(number, name))
        messages.append(redirect(number, numbers[device(index, target)], action(index, part), name))
    ups = [_link(numbers[device(index, part)], _UP) for part in "abxy"]
    return messages + [nl.Message(nl.NEWLINK, 0, up, f"a device of {name}") for up in ups]


def _tc(number: int, handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxHiIII", 0, 0, number, handle, parent, info)


def qdisc(number: int, encoded: bytes, label: str, parent: int = _ROOT) -> nl.Message:
    """Set the qdisc at a device's root, or below the one there. Where its kind is there already, the kernel changes
    it and keeps its packets (so, not EXCLUSIVE). A queue below tbf takes the place of the one that tbf made."""
    if parent == GRANDCHILD:
        return nl.Message(nl.NEWQDISC, nl.CREATE | nl.REPLACE, _tc(number, 0, parent) + encoded, label)
    handle = 0x10000 if parent == _ROOT else 0x20000
    return nl.Message(nl.NEWQDISC, nl.CREATE, _tc(number, handle, parent) + encoded, label)


def ingress(number: int, name: str) -> nl.Message:
    body = _tc(number, _INGRESS_HANDLE, _INGRESS) + nl.text(1, "ingress")
    return nl.Message(nl.NEWQDISC, nl.CREATE | nl.EXCLUSIVE, body, f"the ingress of {name}")


def redirect(number: int, target: int, index: int, name: str) -> nl.Message:
    # tc_mirred: number of the action, capabilities, verdict, two reference counts, kind of redirection, device
    parms = struct.pack("=IIiiiiI", index, 0, _STOLEN, 0, 0, _REDIRECT, target)
    mirred = nl.nested(1, nl.text(1, "mirred"), nl.nested(2, nl.attribute(2, parms)))
    body = _tc(number, 0, _INGRESS_HANDLE, (1 << 16) | _ALL_PACKETS)
    body += nl.text(1, "matchall") + nl.nested(2, nl.nested(2, mirred))
    return nl.Message(nl.NEWTFILTER, nl.CREATE | nl.EXCLUSIVE, body, f"the redirection of {name}")
