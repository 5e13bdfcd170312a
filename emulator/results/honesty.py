"""The honesty block: on what a run was made, how well the emulation held, and why it is marked, if it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.words import out_of_memory
from emulator.devices import costs
from emulator.results import overload
from emulator.training.spec import LAST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.plan import Plan
    from emulator.results.trace import Trace

#: a host busier than this share during a run may have starved a node or the relay
BUSY = 0.9

#: a compute step that takes this many times what the caps allow, and this many real seconds more, was starved
#: (less is a quota's period and the hop to the computing thread)
STARVED, STARVED_SECONDS = 2.0, 0.01

#: a run in which more than this share of an emulated node's steps took longer than the device's tells no times
OVERRAN = 0.01

METHOD = (
    f"test-set accuracy of the server's model at set intervals, computed outside the nodes and off the links, "
    f"outside the budget; final accuracy is the mean of the last {LAST} evaluations of an updated model"
)


def assemble(
    facts: Mapping[str, Any], experiment: Mapping[str, Any], plan: Plan, found: Mapping[str, Sequence[Trace]]
) -> dict[str, Any]:
    """The block as it stands in summary.json. `marks` are reasons to doubt the run; empty = none was seen. Those among
    them that say that the host could not carry the run are also in `degraded`."""
    repeats = [(name, one) for name, many in found.items() for one in many]
    measured: dict[str, Any] = {
        "host_busy": _busy(repeats),
        "throttling": _throttling(repeats),
        "drops": _drops(repeats),
        "relay": _relay(repeats, plan.time_scale),
        "compute": _compute(facts.get("step_seconds"), plan, found),
        "pacing": _pacing(facts.get("pacing"), found),
        "overloads": overload.merged(repeats),
    }
    degraded = _degraded(measured, repeats, plan)
    return {
        **{key: facts.get(key) for key in ("engine", "runtime", "link_driver")},
        "time_scale": plan.time_scale,
        "seed": experiment["seed"],
        "repeats": experiment["repeats"],
        "host": facts.get("host"),
        "started": facts.get("started"),
        "real_seconds": facts.get("real_seconds"),
        "admission": facts.get("admission"),
        **measured,
        "evaluation": METHOD,
        "notes": [*plan.notes, *facts.get("notes", []), *_emulated(plan, measured["pacing"])],
        "degraded": degraded,
        "marks": [*degraded, *_others(facts, measured, repeats, plan)],
    }


def _busy(repeats: Sequence[tuple[str, Trace]]) -> dict[str, float] | None:
    """Share of all host cores in use during the budgets, niced background work (the evaluator) apart."""
    samples = [item for _, one in repeats for item in one.host if one.t0 <= item["t"] <= (one.end or one.last)]
    if not samples:
        return None
    shares = [float(item["busy"]) for item in samples]
    return {
        "mean": sum(shares) / len(shares),
        "max": max(shares),
        "background_mean": sum(float(item["background"]) for item in samples) / len(samples),
    }


def _throttling(repeats: Sequence[tuple[str, Trace]]) -> dict[str, float] | None:
    """The largest share of quota periods in which a node was throttled, by node, over all variants and repeats."""
    worst: dict[str, float] = {}
    for _, one in repeats:
        for node, usage in one.usage.items():
            share = usage["throttled_periods"] / usage["periods"] if usage["periods"] else 0.0
            worst[node] = max(worst.get(node, 0.0), share)
    return worst or None


def _drops(repeats: Sequence[tuple[str, Trace]]) -> dict[str, int] | None:
    """Packets: `asked` by the set loss, `queue` by full queues as set, `unasked` by anything else."""
    counts = [item for _, one in repeats for item in one.traffic.values()]
    if not counts:
        return None
    return {
        "asked": sum(int(item["lost"]) for item in counts),
        "queue": sum(int(item["overflowed"]) for item in counts),
        "unasked": sum(int(item["unasked"]) for item in counts),
    }


def _relay(repeats: Sequence[tuple[str, Trace]], time_scale: float) -> dict[str, Any] | None:
    """The worst of the link driver's health over the run; lateness in real and in emulated seconds."""
    seen = [one.health for _, one in repeats if one.health]
    if not seen:
        return None
    late = [float(item["lateness_p99"]) for item in seen if item["lateness_p99"] is not None]
    return {
        "priority": seen[-1]["priority"],
        "restarts": max(int(item["restarts"]) for item in seen),
        "lateness_p50_real": max(
            (float(item["lateness_p50"]) for item in seen if item["lateness_p50"] is not None), default=None
        ),
        "lateness_p99_real": max(late, default=None),
        "lateness_p99_emulated": max(late) / time_scale if late else None,
    }


def _compute(step_seconds: float | None, plan: Plan, found: Mapping[str, Sequence[Trace]]) -> dict[str, Any] | None:
    """Emulated seconds of a worker's compute step: `expected` from its cost alone on this host and the nodes' caps,
    and as `measured` by variant; both are means over workers. None where nothing was measured."""
    workers = [node for node in plan.machines if node.role == "worker"]
    if step_seconds is None or not workers:
        return None
    expected = sum(step_seconds / node.step_cpus / plan.time_scale for node in workers) / len(workers)
    measured = {}
    for name, repeats in found.items():
        means = [step.compute / step.count for one in repeats for step in one.steps.values() if step.count]
        if means:
            measured[name] = sum(means) / len(means)
    return {"expected": expected, "measured": measured}


def _pacing(expected: str | None, found: Mapping[str, Sequence[Trace]]) -> dict[str, Any] | None:
    """Steps of nodes whose processor is emulated, by variant: how many were `paced` to the device's and how many
    `overran` it, and the means of what the device (`device_s`) and this host (`host_s`) took, emulated seconds."""
    measured = {}
    for name, repeats in found.items():
        nodes = [paced for one in repeats for paced in one.paced.values()]
        if count := sum(paced.count for paced in nodes):
            measured[name] = {
                "paced": count,
                "overran": sum(paced.overran for paced in nodes),
                "device_s": sum(paced.modelled for paced in nodes) / count,
                "host_s": sum(paced.took for paced in nodes) / count,
            }
    return {"expected": expected, "measured": measured} if measured else None


def _held(steps: Mapping[str, Any]) -> bool:
    return bool(steps["overran"] <= OVERRAN * steps["paced"])


def _emulated(plan: Plan, pacing: Mapping[str, Any] | None) -> list[str]:
    """What a run with paced nodes says of itself."""
    if pacing is None:
        return []
    nodes = [node for node in plan.machines if node.role and node.foreign and node.cpu_model]
    models = ", ".join(sorted({node.cpu_model for node in nodes}))
    steps = "; ".join(
        f"{name} {one['device_s'] * 1e3:.3g} ms a step, {one['overran']} of {one['paced']} steps overran"
        for name, one in pacing["measured"].items()
    )
    held = all(_held(one) for one in pacing["measured"].values())
    what = f"{', '.join(node.name for node in nodes)} ran {nodes[0].arch} programs under QEMU ({models}), paced"
    whose = "; times are the model's, not QEMU's" if held else ""
    return [f"{what} to the calibrated device: {steps}{whose}"]


def _degraded(measured: Mapping[str, Any], repeats: Sequence[tuple[str, Trace]], plan: Plan) -> list[str]:
    """What says that the host could not carry the run as planned."""
    drops, relay = measured["drops"], measured["relay"]
    marks = [overload.sentence(one) for one in measured["overloads"]]
    if drops and drops["unasked"]:
        marks.append(f"{drops['unasked']} packets were dropped that nobody asked to drop")
    seen = any(one["cause"] == "lateness" for one in measured["overloads"])
    if relay and relay["lateness_p99_emulated"] is not None and not seen:
        late = relay["lateness_p99_emulated"]
        if late > costs.lateness_allowed(plan):
            marks.append(f"1 % of packets came {late * 1e3:.1f} ms or more too late (emulated)")
    pacing = measured["pacing"] or {"measured": {}}
    marks += [
        f"{name}: {steps['overran']} of {steps['paced']} steps under QEMU took longer than on the device: "
        "no timing can be concluded"
        for name, steps in pacing["measured"].items()
        if not _held(steps)
    ]
    for name, one in repeats:
        busy = _busy([(name, one)])
        if busy and busy["mean"] > BUSY:
            share = f"{busy['mean'] * 100:.0f} % busy (over {BUSY * 100:.0f} %)"
            marks.append(f"{name}: the host was {share}; nodes may have had less CPU than planned")
    return marks


def _others(
    facts: Mapping[str, Any], measured: Mapping[str, Any], repeats: Sequence[tuple[str, Trace]], plan: Plan
) -> list[str]:
    """Other reasons to doubt the run."""
    relay = measured["relay"]
    marks = list(facts.get("marks", []))
    compute = measured["compute"] or {"measured": {}}
    for name, seconds in compute["measured"].items():
        # While it computes, a node also pays for the messages before and after out of its cap.
        allowed = compute["expected"] * facts.get("cycle_seconds", {}).get(name, 0.0) / facts["step_seconds"]
        allowed = max(compute["expected"], allowed)
        late = (seconds - allowed) * plan.time_scale
        if seconds > STARVED * allowed and late > STARVED_SECONDS:
            times = f"{seconds / allowed:.1f} times"
            marks.append(f"{name}: a compute step took {times} what the workers' caps allow on an idle host")
    if relay and relay["restarts"]:
        marks.append(f"the link driver's process was restarted {relay['restarts']} times")
    unpaced = [node.name for node in plan.machines if node.role and node.foreign and not node.cpu_model]
    if unpaced and facts.get("engine") == "emulation":
        marks.append(f"{', '.join(unpaced)}: QEMU ran their programs at no device's pace: no timing can be concluded")
    for name, one in repeats:
        marks += [f"{name}: node {item['node']} died" for item in one.died]
        marks += [
            f"{name}: {out_of_memory(node, usage['oom_kills'], usage['memory_peak'], plan.node(node).memory)}"
            for node, usage in one.usage.items()
            if usage["oom_kills"]
        ]
    return marks
