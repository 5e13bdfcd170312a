"""The directions of links that a message takes through a Plan: fewest hops, ties by the Plan's order."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.core.plan import Impairment, Plan


def path(plan: Plan, source: str, target: str) -> list[Impairment]:
    """The impairments on the way from `source` to `target`; raises ValueError if there is no way."""
    ways: defaultdict[str, list[tuple[str, Impairment]]] = defaultdict(list)
    for link in plan.links:
        ways[link.a.node].append((link.b.node, link.a_to_b))
        ways[link.b.node].append((link.a.node, link.b_to_a))
    found: dict[str, list[Impairment]] = {source: []}
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        if here == target:
            return found[here]
        for there, impairment in ways[here]:
            if there not in found:
                found[there] = [*found[here], impairment]
                waiting.append(there)
    raise ValueError(f"no way from {source} to {target}")
