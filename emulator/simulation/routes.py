"""The way from node to node over a Plan's links: least delay, then fewest hops, the rule of the Plan's own routes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.core.plan import Impairment, LinkPlan, Plan


@dataclass(frozen=True)
class Hop:
    """One direction of a link on the way from `start` to `end`."""

    key: tuple[str, str]
    start: str
    end: str
    impairment: Impairment
    mtu: int


class Routes:
    """Ways over a Plan; worked out once per pair that asks."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._from: dict[str, list[Hop]] = {node.name: [] for node in plan.nodes}
        self._forwards = {node.name for node in plan.nodes if node.kind != "host"}
        for link in plan.links:
            for hop in _hops(link):
                self._from[hop.start].append(hop)

    @property
    def hops(self) -> Iterator[Hop]:
        """All directions of all links."""
        for hops in self._from.values():
            yield from hops

    def between(self, start: str, end: str) -> tuple[Hop, ...]:
        """The hops from a node to another, none from a node to itself; raises TopologyError if there is no way."""
        queue: list[tuple[float, int, str, tuple[Hop, ...]]] = [(0.0, 0, start, ())]
        seen: set[str] = set()
        while queue:
            delay, count, node, way = heapq.heappop(queue)
            if node == end:
                return way
            if node in seen or (node != start and node not in self._forwards):
                continue
            seen.add(node)
            for hop in self._from[node]:
                if hop.end not in seen:
                    item = delay + float(hop.impairment.delay), count + 1, hop.end, (*way, hop)
                    heapq.heappush(queue, item)
        raise TopologyError(
            f"{start} cannot reach {end}",
            where=self._plan.source or self._plan.name,
            fix="link them, or a router between",
        )


def _hops(link: LinkPlan) -> tuple[Hop, Hop]:
    a, b = link.a.node, link.b.node
    return (
        Hop((link.name, "a"), a, b, link.a_to_b, link.mtu),
        Hop((link.name, "b"), b, a, link.b_to_a, link.mtu),
    )
