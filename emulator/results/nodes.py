"""What each node did in a repeat: its CPU use as a share of its cap, and the bytes it sent and received.

In a lab these are cgroup and interface counters; on the virtual clock they are what the model charged, and say so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.core.plan import Plan
    from emulator.results.trace import Trace


@dataclass(frozen=True)
class NodeUse:
    """`cpu` is the share of the node's cap that was used; bytes are IP bytes in a lab, message bytes on `fake`."""

    node: str
    measured: bool
    cpu: float
    throttled: float | None
    memory_peak: int | None
    shared: int | None
    oom_kills: int
    sent_bytes: int
    received_bytes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def use_of(plan: Plan, trace: Trace) -> list[NodeUse]:
    """One `NodeUse` for each node of the Plan with a role, in the Plan's order."""
    nodes = [node.name for node in plan.machines if node.role]
    return [_measured(plan, trace, name) if name in trace.usage else _modelled(trace, name) for name in nodes]


def _measured(plan: Plan, trace: Trace, name: str) -> NodeUse:
    usage = trace.usage[name]
    sent = received = 0
    for link in plan.links:
        counts = trace.traffic.get(link.name)
        if counts is None or name not in (link.a.node, link.b.node):
            continue
        out, back = counts["a_to_b_bytes"], counts["b_to_a_bytes"]
        sent += out if link.a.node == name else back
        received += back if link.a.node == name else out
    return NodeUse(
        node=name,
        measured=True,
        cpu=float(usage["cpu_share"]),
        throttled=usage["throttled_periods"] / usage["periods"] if usage["periods"] else 0.0,
        memory_peak=int(usage["memory_peak"]),
        shared=int(usage["shared"]),
        oom_kills=int(usage["oom_kills"]),
        sent_bytes=sent,
        received_bytes=received,
    )


def _modelled(trace: Trace, name: str) -> NodeUse:
    steps = trace.steps.get(name)
    busy = steps.compute / trace.seconds if steps and trace.seconds else 0.0
    return NodeUse(
        node=name,
        measured=False,
        cpu=min(1.0, busy),
        throttled=None,
        memory_peak=None,
        shared=None,
        oom_kills=0,
        sent_bytes=trace.sent[name],
        received_bytes=trace.received[name],
    )
