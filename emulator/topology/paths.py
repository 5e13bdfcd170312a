"""The way a packet takes through a Plan, found by following its addresses and routes as the kernels will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.units import Delay

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from emulator.core.plan import Impairment, LinkPlan, NodePlan, Plan

MAX_HOPS = 64


@dataclass(frozen=True)
class Step:
    """One cable on the way, in the direction from `start` to `end`."""

    link: LinkPlan
    start: str
    end: str

    @property
    def impairment(self) -> Impairment:
        """What this direction does to the packet."""
        return self.link.a_to_b if self.link.a.node == self.start else self.link.b_to_a


class Paths:
    """Paths of one Plan. Only the Plan's own addresses and routes are used, never its graph."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = {node.name: node for node in plan.nodes}
        self._links = {link.name: link for link in plan.links}
        self._owners = {item.address.ip: node.name for node in plan.nodes for item in node.interfaces if item.address}

    def between(self, start: str, end: str, address: IPv4Address | None = None) -> list[Step]:
        """The cables from `start` to `end` (to its primary address, unless another is given).

        Raises ValueError where a packet would be lost: no route, a next hop that is not there, a loop.
        """
        target = address or self._nodes[end].address
        if target is None:
            raise ValueError(f"{end} has no address")
        steps: list[Step] = []
        here = self._nodes[start]
        while here.name != end:
            if steps and here.kind != "router":
                raise ValueError(f"{here.name} does not forward to {target}")
            hop, interface = self._next(here, target)
            steps += self._across(here, interface, self._owners.get(hop, ""))
            here = self._nodes[steps[-1].end]
            if len(steps) > MAX_HOPS:
                raise ValueError(f"a loop from {start} to {target}: {[step.end for step in steps[:8]]}")
        return steps

    def one_way(self, start: str, end: str) -> Delay:
        """The set delay from one node to another, without queueing, line time and jitter."""
        return Delay(sum(step.impairment.delay for step in self.between(start, end)))

    def round_trip(self, start: str, end: str) -> Delay:
        """There and back; the two ways may differ."""
        return Delay(self.one_way(start, end) + self.one_way(end, start))

    def _next(self, node: NodePlan, target: IPv4Address) -> tuple[IPv4Address, str]:
        """The next address and the interface towards it: the most specific of connected networks and routes."""
        found = [
            (item.address.network.prefixlen, target, item.name)
            for item in node.interfaces
            if item.address and target in item.address.network
        ]
        found += [(r.destination.prefixlen, r.via, r.interface) for r in node.routes if target in r.destination]
        if not found:
            raise ValueError(f"{node.name} has no route to {target}")
        _, hop, interface = max(found, key=lambda item: item[0])
        return hop, interface

    def _across(self, node: NodePlan, interface: str, to: str) -> list[Step]:
        """The cables of one segment, through its switches, from an interface to the node `to`."""
        first = next(item.link for item in node.interfaces if item.name == interface)
        queue = [[self._step(first, node.name)]]
        for steps in queue:
            here = self._nodes[steps[-1].end]
            if here.name == to:
                return steps
            if here.kind == "switch":
                queue += [
                    [*steps, self._step(item.link, here.name)]
                    for item in here.interfaces
                    if item.link != steps[-1].link.name
                ]
        raise ValueError(f"{to or 'nobody'} does not answer on {node.name} {interface}")

    def _step(self, link: str, start: str) -> Step:
        plan = self._links[link]
        return Step(plan, start, plan.b.node if plan.a.node == start else plan.a.node)
