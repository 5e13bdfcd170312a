"""Nodes and cables as a graph; its segments (one subnet each); and the clusters that cannot work, refused.

A switch, or several linked ones, is one segment; so is a cable between two hosts or routers. Hosts do not
forward: a path may end at one but not pass through it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Edge:
    """A cable. Delays are seconds one way; `spread` is both directions' jitter."""

    name: str
    a: str
    b: str
    delay_ab: float = 0.0
    delay_ba: float = 0.0
    spread: float = 0.0
    mtu: int = 1500
    where: str = ""

    def other(self, node: str) -> str:
        """The end that is not `node`."""
        return self.b if node == self.a else self.a

    def delay_from(self, node: str) -> float:
        """The delay of the direction that leads away from `node`."""
        return self.delay_ab if node == self.a else self.delay_ba

    @property
    def round_trip(self) -> float:
        """There and back, jitter included."""
        return self.delay_ab + self.delay_ba + self.spread


@dataclass
class Segment:
    """Interfaces that reach each other without a router: `members` maps each node to its one cable here."""

    name: str
    members: dict[str, int] = field(default_factory=dict)
    switches: tuple[str, ...] = ()


class Graph:
    """The cluster's graph. `kinds` holds the nodes in the order of the file; `edges` are told by their index."""

    def __init__(self, kinds: Mapping[str, str], edges: Sequence[Edge]) -> None:
        self.kinds = kinds
        self.edges = edges
        self.at: dict[str, list[int]] = {name: [] for name in kinds}
        for index, edge in enumerate(edges):
            self.at[edge.a].append(index)
            self.at[edge.b].append(index)
        self.segments: list[Segment] = []
        #: (node, edge index) -> segment
        self.segment_at: dict[tuple[str, int], Segment] = {}

    @property
    def is_tree(self) -> bool:
        """Whether there is one path only between any two nodes (of a connected graph)."""
        return len(self.edges) == len(self.kinds) - 1

    def neighbours(self, node: str) -> Iterable[tuple[str, int]]:
        """The nodes at the other ends of a node's cables, with the cable's index."""
        for index in self.at[node]:
            yield self.edges[index].other(node), index

    def passes(self, node: str) -> bool:
        """Whether packets may pass through the node."""
        return self.kinds[node] != "host"


def build(kinds: Mapping[str, str], edges: Sequence[Edge], where: str) -> Graph:
    """The graph with its segments; raises TopologyError (at `where`, or at a cable) for one that cannot work."""
    graph = Graph(kinds, edges)
    if "host" not in kinds.values():
        raise TopologyError("there is no host", where=where, fix="add a node without `kind`")
    _check_connected(graph, where)
    _check_forwarding(graph, where)
    _find_segments(graph)
    return graph


def reach(graph: Graph, start: Iterable[str], through: Iterable[str]) -> dict[str, str | None]:
    """All nodes reached from `start` by way of the nodes `through`, each with the node that it was reached from."""
    allowed = set(through)
    came: dict[str, str | None] = dict.fromkeys(start)
    queue = list(came)
    for node in queue:
        if node in allowed or came[node] is None:
            for peer, _ in graph.neighbours(node):
                if peer not in came:
                    came[peer] = node
                    queue.append(peer)
    return came


def _check_connected(graph: Graph, where: str) -> None:
    parts: list[list[str]] = []
    seen: set[str] = set()
    for node in graph.kinds:
        if node not in seen:
            part = reach(graph, [node], graph.kinds)
            seen |= part.keys()
            parts.append([name for name in graph.kinds if name in part])
    if len(parts) > 1:
        shown = " | ".join(_some(part) for part in parts[:4]) + (" | ..." if len(parts) > 4 else "")
        raise TopologyError(
            f"the cluster falls into {len(parts)} parts: {shown}", where=where, fix="add a link between them"
        )


def _check_forwarding(graph: Graph, where: str) -> None:
    """Refuse a cluster in which two nodes could meet only through a host."""
    core = [node for node in graph.kinds if graph.passes(node)]
    reached = reach(graph, core[:1], core)
    if core:
        strangers = [node for node in graph.kinds if node not in reached]
        pair = (core[0], strangers[0]) if strangers else None
    else:
        names = list(graph.kinds)
        lonely = ((a, set(names) - {a} - {peer for peer, _ in graph.neighbours(a)}) for a in names)
        pair = next(((a, min(missing, key=names.index)) for a, missing in lonely if missing), None)
    if pair is None:
        return
    came = reach(graph, pair[:1], graph.kinds)
    step, between = came[pair[1]], pair[1]
    while step is not None and step != pair[0]:
        between = step if not graph.passes(step) else between
        step = came[step]
    raise TopologyError(
        f"{pair[0]!r} and {pair[1]!r} could meet only through the host {between!r}, and hosts do not forward",
        where=where,
        fix=f"give {between!r} `kind: router`, or connect all nodes by a switch or a router",
    )


def _find_segments(graph: Graph) -> None:
    done: set[str] = set()
    for node, kind in graph.kinds.items():
        if kind == "switch" and node not in done:
            segment = _switched(graph, node)
            done |= set(segment.switches)
            _add(graph, segment)
    for index, edge in enumerate(graph.edges):
        if "switch" not in (graph.kinds[edge.a], graph.kinds[edge.b]):
            _add(graph, Segment(edge.name, {edge.a: index, edge.b: index}))


def _add(graph: Graph, segment: Segment) -> None:
    graph.segments.append(segment)
    for node, index in segment.members.items():
        graph.segment_at[node, index] = segment


def _switched(graph: Graph, start: str) -> Segment:
    """The segment of a switch and all switches linked to it; raises TopologyError for a loop or a double plug."""
    segment, used = Segment(start), set[int]()
    queue, seen = [start], {start}
    for switch in queue:
        for peer, index in graph.neighbours(switch):
            if index in used:
                continue
            used.add(index)
            edge = graph.edges[index]
            if graph.kinds[peer] == "switch":
                if peer in seen:
                    raise TopologyError(
                        f"the link {edge.name!r} closes a loop of switches, in which packets would circle for ever",
                        where=edge.where,
                        fix="remove it, or make one of the switches a router",
                    )
                seen.add(peer)
                queue.append(peer)
            elif peer in segment.members:
                raise TopologyError(
                    f"{peer!r} is plugged twice into the switched network of {switch!r}",
                    where=edge.where,
                    fix="remove one of its links, or put a router between",
                )
            else:
                segment.members[peer] = index
    _check_mtu(graph, used)
    segment.switches = tuple(queue)
    return segment


def _check_mtu(graph: Graph, used: set[int]) -> None:
    edges = [graph.edges[index] for index in sorted(used)]
    odd = next((edge for edge in edges if edge.mtu != edges[0].mtu), None)
    if odd:
        raise TopologyError(
            f"{odd.name!r} has an mtu of {odd.mtu} and {edges[0].name!r}, on the same switch, of {edges[0].mtu}",
            where=odd.where,
            fix="give all links of a switch the same mtu",
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
