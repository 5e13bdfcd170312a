"""`time_scale: auto`: the fastest factor that this host carries with head-room, for a lab whose workload is not known.

Every node may use its whole cap and every line may be full at once (one way), so an experiment, which knows its own
use, often finds a faster one. What limited the choice is told beside it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.core.words import counted
from emulator.devices import costs
from emulator.topology.model import MAX_TIME_SCALE, MIN_TIME_SCALE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.core.plan import Impairment, LinkPlan, Plan

    #: directions with the most that can come through each, emulated bits per second
    Traffic = Sequence[tuple[Impairment, float]]

#: a time scale at which no node's cap is cut down to the host's cores; twice it tells which caps scale at all
_SLOW = 1000.0
_STEPS = 4


@dataclass(frozen=True)
class Need:
    """A least time scale, and what asks for it."""

    scale: float
    why: str


def round_up(scale: float) -> float:
    """Two digits, never less than `scale`."""
    step = 10.0 ** (math.floor(math.log10(scale)) - 1)
    return float(f"{math.ceil(round(scale / step, 6)) * step:.6g}")


def choose(at: Callable[[float], Plan], cores: int) -> Plan:
    """The Plan `at` the fastest time scale that `cores` host cores carry, with a note that says why."""
    slow = at(_SLOW)
    scaling, traffic = _scaling(slow, at(2 * _SLOW)), flows(slow)
    return decided(at, [_cores(at, scaling, traffic, cores), *_each(slow, scaling, traffic, cores)])


def decided(at: Callable[[float], Plan], needs: Sequence[Need]) -> Plan:
    """The Plan at the largest of the needs, two digits of it, noted."""
    hardest = max(needs, key=lambda need: need.scale)
    plan = at(round_up(min(MAX_TIME_SCALE, max(MIN_TIME_SCALE, hardest.scale))))
    note = f"time scale {plan.time_scale:g} was chosen (auto); what limits it: {hardest.why}"
    return replace(plan, notes=(note, *plan.notes))


def lateness(plan: Plan) -> Need:
    """What the links' timing asks for: the relay's lateness must stay under what matters, in emulated time."""
    allowed = costs.lateness_allowed(plan)
    return Need(
        costs.LATENESS / allowed if plan.links else 0.0,
        f"packets come up to {costs.LATENESS * 1e3:g} real ms late, and {allowed * 1e3:.3g} emulated ms do not matter",
    )


def _scaling(slow: Plan, slower: Plan) -> list[str]:
    """The nodes whose cap is a device's; the others take of the host what is left (their cap does not scale)."""
    pairs = zip(slow.machines, slower.machines, strict=True)
    return [a.name for a, b in pairs if float(b.host_cpus) < float(a.host_cpus)]


def least(load: Callable[[float], float], room: float) -> float:
    """The least time scale at which a load, which falls with it, fits the room (in the ends' own steps: 0.5 %)."""
    low, high = math.log(MIN_TIME_SCALE), math.log(MAX_TIME_SCALE)
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if load(math.exp(middle)) <= room else (middle, high)
    return math.exp(high)


def _cores(at: Callable[[float], Plan], scaling: Sequence[str], traffic: Traffic, cores: int) -> Need:
    """All nodes at their caps, all lines full, and the emulator's own."""
    room = costs.USE * cores - costs.OWN
    scale, nodes = _SLOW, 0.0
    for _ in range(_STEPS):  # the caps of a node times the time scale are nearly one figure
        nodes = sum(node.quota for node in at(scale).machines if node.name in scaling)
        worth, before = nodes * scale, scale
        scale = least(lambda s: worth / s + costs.carrying(traffic, s), room)  # noqa: B023 - called at once
        if abs(scale / before - 1) < 0.01:
            break
    why = (
        f"{counted(len(scaling), 'node')} may use {nodes:.2g} host cores at once and full links "
        f"{costs.carrying(traffic, scale):.2g}, of {room:.2g} that are planned with "
        f"({costs.USE:.0%} of {counted(cores, 'core')}, less the emulator's own)"
    )
    return Need(scale, why)


def _each(slow: Plan, scaling: Sequence[str], traffic: Traffic, cores: int) -> list[Need]:
    """What single parts ask for: one thread runs on one core, and so does the relay; and lateness."""
    relay = least(lambda scale: costs.carrying(traffic, scale), costs.USE)
    why = "one relay, which runs on one core, carries all links when all are full"
    return [lateness(slow), Need(relay, why), *_threads(slow, scaling, cores)]


def fast_cores(at: Callable[[float], Plan], cores: int) -> list[Need]:
    """What devices ask for whose core is fast: one thread runs on one core of this host at most."""
    slow = at(_SLOW)
    return _threads(slow, _scaling(slow, at(2 * _SLOW)), cores)


def _threads(slow: Plan, scaling: Sequence[str], cores: int) -> list[Need]:
    found = []
    for node in slow.machines:
        if node.name in scaling:
            threads = min(math.ceil(node.cpus), cores)
            why = f"a core of {node.name} ({node.device}) is then as fast as one of this host"
            found.append(Need(_SLOW * float(node.native_cpus or node.host_cpus) / threads, why))
    return found


def flows(plan: Plan) -> Traffic:
    """Each link's busier direction and the most that can come through it, emulated bits per second.

    That is the line's own rate, but no more than the machines on one side can send and those on the other take (where
    the link is part of a ring, its own rate). The other direction has the acknowledgements. A link that nothing limits
    is left out.
    """
    hosts = {node.name for node in plan.machines}
    sends, takes = dict.fromkeys(hosts, 0.0), dict.fromkeys(hosts, 0.0)
    near: defaultdict[str, list[LinkPlan]] = defaultdict(list)
    for link in plan.links:
        for end, out, back in ((link.a, link.a_to_b, link.b_to_a), (link.b, link.b_to_a, link.a_to_b)):
            near[end.node].append(link)
            if end.node in hosts:
                sends[end.node] += _rate(out)
                takes[end.node] += _rate(back)
    found: list[tuple[Impairment, float]] = []
    for link in plan.links:
        here = _side(near, link)
        there = hosts - here
        ring, ways = link.b.node in here, []
        for way, source, target in ((link.a_to_b, here & hosts, there), (link.b_to_a, there, here & hosts)):
            ends = min(sum(sends[name] for name in source), sum(takes[name] for name in target))
            ways.append((way, _rate(way) if ring else min(_rate(way), ends)))
        found.append(max(ways, key=lambda pair: pair[1] if math.isfinite(pair[1]) else 0.0))
    return [(way, rate) for way, rate in found if math.isfinite(rate)]


def _rate(way: Impairment) -> float:
    return math.inf if way.rate is None else float(way.rate)


def _side(near: Mapping[str, Sequence[LinkPlan]], link: LinkPlan) -> set[str]:
    """The nodes that are reached from the link's end `a` without it."""
    seen, waiting = {link.a.node}, [link.a.node]
    while waiting:
        for one in near[waiting.pop()]:
            for end in (one.a.node, one.b.node):
                if one is not link and end not in seen:
                    seen.add(end)
                    waiting.append(end)
    return seen
