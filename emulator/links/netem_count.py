"""Counters of a hub's cables, from the kernel's own.

What tbf drops found no room in the queue. netem counts packets that it lost as asked together with those beyond its
limit; but only of the latter does it tell whoever handed the packet in, which is the redirection, and that counts it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from emulator.links import netem_hub as hub_of
from emulator.links import netem_netlink as nl
from emulator.links.base import CableStatistics, DirectionStatistics
from emulator.links.netem_line import ETHERNET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

_KIND, _STATS2 = 1, 7
_BASIC, _QUEUE, _PACKETS64 = 1, 3, 8
_LARGE_DUMP = struct.pack("=II", 1, 1)


class _Counter(NamedTuple):
    packets: int
    nbytes: int
    drops: int
    overlimits: int


#: where a qdisc stands on its device: at the root, below that, and below that one
ROOT, CHILD, GRANDCHILD = 0, 1, 2
_LEVELS = {0xFFFFFFFF: ROOT, hub_of.CHILD: CHILD, hub_of.GRANDCHILD: GRANDCHILD}

Disciplines = dict[tuple[int, int], dict[int, bytes]]


def qdiscs(hub: nl.Netlink) -> Disciplines:
    """The attributes of every queueing discipline, by its device's number and where on the device it stands."""
    found = {}
    for body in hub.dump(nl.GETQDISC, struct.pack("=BxHiIII", 0, 0, 0, 0, 0, 0)):
        _, _, number, _, parent, _ = struct.unpack_from("=BxHiIII", body)
        if parent in _LEVELS:
            found[number, _LEVELS[parent]] = dict(nl.attributes(body[20:]))
    return found


def read(hub: nl.Netlink, names: list[str]) -> Mapping[str, CableStatistics]:
    """The counters of the cables, which are numbered in the order of `names`."""
    devices, disciplines, refused = hub_of.links(hub), qdiscs(hub), _redirections(hub)

    def direction(index: int, line: str, port: str, entry: str) -> DirectionStatistics:
        line_number, _, line_dropped = devices[hub_of.device(index, line)]
        port_number, _, port_dropped = devices[hub_of.device(index, port)]
        queue = _counter(disciplines[line_number, CHILD][_STATS2])
        managed = disciplines.get((line_number, GRANDCHILD))
        out = _counter(disciplines[port_number, ROOT][_STATS2])
        beyond = refused.get(hub_of.action(index, entry), 0)
        return DirectionStatistics(
            packets=out.packets,
            bytes=out.nbytes - ETHERNET * out.packets,
            lost=out.drops - beyond,
            # A queue that is managed drops packets that tbf has taken.
            overflowed=queue.drops + (_counter(managed[_STATS2]).drops if _is_codel(managed) else 0),
            unasked=beyond + line_dropped + port_dropped,
        )

    return {
        name: CableStatistics(direction(index, "x", "b", "y"), direction(index, "y", "a", "x"))
        for index, name in enumerate(names)
    }


def _is_codel(answer: dict[int, bytes] | None) -> TypeGuard[dict[int, bytes]]:
    return answer is not None and answer[_KIND].rstrip(b"\0") == b"codel"


def _counter(data: bytes) -> _Counter:
    found = dict(nl.attributes(data))
    nbytes, packets = struct.unpack_from("=QI", found[_BASIC])
    if _PACKETS64 in found:
        packets = struct.unpack_from("=Q", found[_PACKETS64])[0]
    _, _, drops, _, overlimits = struct.unpack_from("=5I", found[_QUEUE])
    return _Counter(packets, nbytes, drops, overlimits)


def _redirections(hub: nl.Netlink) -> dict[int, int]:
    """How many packets each redirection could not hand on, by its number."""
    asked = nl.nested(1, nl.nested(1, nl.text(1, "mirred"))) + nl.attribute(2, _LARGE_DUMP)
    found = {}
    for body in hub.dump(nl.GETACTION, bytes(4) + asked):
        for kind, table in nl.attributes(body[4:]):
            if kind != 1:
                continue
            for _, entry in nl.attributes(table):
                answer = dict(nl.attributes(entry))
                parms = dict(nl.attributes(answer[2]))[2]
                found[struct.unpack_from("=I", parms)[0]] = _counter(answer[4]).overlimits
    return found
