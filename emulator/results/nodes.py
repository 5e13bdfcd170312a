"""What each node did in a repeat: its CPU use as a share of its cap, the bytes it sent and received, its energy.

In a lab these are cgroup and interface counters; on the virtual clock they are what the model charged, and say so.
Energy is always modelled, from the CPU use (`devices.power`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from emulator.devices.power import watts

if TYPE_CHECKING:
    from emulator.core.plan import NodePlan, Plan
    from emulator.results.trace import Trace


@dataclass(frozen=True)
class NodeUse:
    """`cpu` is the share of the node's cap that was used; bytes are IP bytes in a lab, message bytes on `fake`.

    `watts` is the mean draw of the device from the first pull to the stop, `joules` that over the emulated seconds;
    None where the device's watts are not known.
    """

    node: str
    measured: bool
    cpu: float
    throttled: float | None
    memory_peak: int | None
    shared: int | None
    oom_kills: int
    sent_bytes: int
    received_bytes: int
    watts: float | None = None
    joules: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def use_of(plan: Plan, trace: Trace) -> list[NodeUse]:
    """One `NodeUse` for each node of the Plan with a role, in the Plan's order."""
    return [_use(plan, trace, node) for node in plan.machines if node.role]


def _use(plan: Plan, trace: Trace, node: NodePlan) -> NodeUse:
    use = _measured(plan, trace, node.name) if node.name in trace.usage else _modelled(trace, node.name)
    if node.power is None:
        return use
    drawn = watts(node.power, _busy(trace, node, use) * float(node.cpus))
    return replace(use, watts=round(drawn, 4), joules=round(drawn * trace.seconds, 3))


def _busy(trace: Trace, node: NodePlan, use: NodeUse) -> float:
    """The share of its cores that the node would have used on the device, from the first pull to the stop."""
    if not use.measured:
        return use.cpu
    if node.foreign:  # its CPU time is the emulating QEMU's; the device's is known of the paced steps only
        paced = trace.paced.get(node.name)
        return paced.modelled / trace.seconds if paced and trace.seconds else 0.0
    last, before = trace.usage[node.name], trace.usage_before.get(node.name, {})
    cpu, real = (float(last[key]) - float(before.get(key, 0.0)) for key in ("cpu_s", "real_s"))
    return cpu / (real * node.quota) if real > 0 and node.host_cpus else use.cpu


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
