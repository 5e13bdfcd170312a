"""A run's records -> its summary: one dictionary, the frozen format behind tables, reports and tests (summary.json).

Bytes "to the server" are pushes; payload bytes count raw arrays, message bytes all that is handed to the transport.
Reductions are relative to the dense baseline; accuracies are shares (0 to 1).
"""

from __future__ import annotations

import json
import statistics
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError
from emulator.core.plan import Plan
from emulator.results import honesty, trace
from emulator.results.energy import energy_of
from emulator.results.nodes import use_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.results.store import Run
    from emulator.results.trace import Trace

    _Needs = Mapping[str, type | tuple[type, ...]]

#: a final accuracy below this is called diverged, and no win is claimed over it or by it
DIVERGED = 0.5

#: what the summary takes from experiment.json, from its workload and from each of its variants
_EXPERIMENT: _Needs = {
    "variants": list,
    "topology": str,
    "workload": dict,
    "budget": (int, float),
    "seed": int,
    "repeats": int,
}
_WORKLOAD: _Needs = {"model": str, "dataset": str, "batch": int}
_VARIANT: _Needs = {
    "name": str,
    "exchange": str,
    "compressor": object,
    "learning_rate": (int, float),
    "compression": object,
}

#: figures that are averaged over repeats, each with its spread (sample standard deviation; None for one repeat)
FIGURES = (
    "final_accuracy",
    "best_accuracy",
    "updates",
    "payload_bytes_to_server",
    "payload_bytes_per_update",
    "message_bytes_to_server",
    "message_bytes_per_update",
    "payload_bytes_from_server",
    "emulated_seconds",
    "staleness_mean",
    "pull_seconds",
    "compute_seconds",
    "push_seconds",
)


def traces(run: Run) -> dict[str, list[Trace]]:
    """All repeats that were begun, by variant in the experiment's order."""
    experiment = experiment_of(run)
    found = {}
    for variant in experiment["variants"]:
        directory = run.directory / variant["name"]
        repeats = sorted((path for path in directory.glob("*") if path.name.isdigit()), key=lambda path: int(path.name))
        if repeats:
            found[str(variant["name"])] = [trace.read(path) for path in repeats]
    return found


def experiment_of(run: Run) -> dict[str, Any]:
    """The run's resolved experiment; raises ResultError, also where something that the summary needs is missing."""
    experiment = run.read("experiment.json")
    where = str(run.directory / "experiment.json")
    _need(experiment, _EXPERIMENT, "", where)
    _need(experiment["workload"], _WORKLOAD, " of the workload", where)
    for number, variant in enumerate(experiment["variants"], 1):
        _need(variant, _VARIANT, f" of variant {number}", where)
    return experiment


def _need(value: Any, needed: _Needs, of: str, where: str) -> None:
    for key, kind in needed.items():
        if not isinstance(value, dict) or key not in value or not isinstance(value[key], kind):
            raise ResultError(f"`{key}`{of} is missing or damaged", where=where, fix="remove this damaged run")


def plan_of(run: Run) -> Plan:
    """The run's resolved Plan; raises ResultError."""
    value = run.read("plan.json")
    try:
        return Plan.from_json(json.dumps(value))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise ResultError(
            f"this is not a Plan ({why})", where=str(run.directory / "plan.json"), fix="remove this damaged run"
        ) from error


def summarise(run: Run, read: Mapping[str, Sequence[Trace]] | None = None) -> dict[str, Any]:
    """The summary of a run, also of one cut short. Raises ResultError where records cannot be read."""
    experiment, facts, plan = experiment_of(run), run.read("run.json"), plan_of(run)
    found = traces(run) if read is None else read
    if not found:
        raise ResultError("this run has no records", where=str(run.directory), fix="run the experiment again")
    variants = {
        item["name"]: _variant(item, found[item["name"]], plan, experiment)
        for item in experiment["variants"]
        if item["name"] in found
    }
    baseline = experiment.get("baseline")
    base = variants.get(baseline) if baseline else None
    for name, variant in variants.items():
        variant["against_baseline"] = (
            _against(base, variant, found[str(baseline)], found[name]) if base and name != baseline else None
        )
    return {
        "version": 1,
        "name": run.name,
        "run": run.id,
        "state": run.state(),
        "topology": PurePath(experiment["topology"]).stem,
        "workload": experiment["workload"],
        "budget": experiment["budget"],
        "time_scale": plan.time_scale,
        "seed": experiment["seed"],
        "repeats": experiment["repeats"],
        "baseline": baseline,
        "variants": variants,
        "findings": _findings(baseline, variants),
        "honesty": honesty.assemble(facts, experiment, plan, found),
    }


def _variant(
    item: Mapping[str, Any], repeats: Sequence[Trace], plan: Plan, experiment: Mapping[str, Any]
) -> dict[str, Any]:
    figures = [_figures(one) for one in repeats]
    means = {key: _mean([one[key] for one in figures]) for key in FIGURES}
    uses = [use_of(plan, repeat) for repeat in repeats]
    return {
        "state": _state(means["final_accuracy"], repeats, int(experiment["repeats"])),
        **{key: item[key] for key in ("exchange", "compressor", "learning_rate", "compression")},
        **means,
        "spread": {key: _spread([one[key] for one in figures]) for key in FIGURES},
        "energy": energy_of(uses, [repeat.updates for repeat in repeats]),
        "repeats": [
            one | {"seed": int(experiment["seed"]) + number, "nodes": [use.as_dict() for use in nodes]}
            for number, (one, nodes) in enumerate(zip(figures, uses, strict=True))
        ],
    }


def _state(accuracy: float | None, repeats: Sequence[Trace], asked: int) -> str:
    if len(repeats) < asked or not all(one.complete for one in repeats):
        return "incomplete"
    return "diverged" if accuracy is None or accuracy < DIVERGED else "ok"


def _figures(one: Trace) -> dict[str, Any]:
    steps = list(one.steps.values())
    count = sum(step.count for step in steps)
    updates = one.updates
    return {
        "final_accuracy": one.final_accuracy,
        "best_accuracy": max((item.accuracy for item in one.evaluations), default=None),
        "updates": updates,
        "payload_bytes_to_server": one.payload_to_server,
        "payload_bytes_per_update": _ratio(one.payload_applied, updates),
        "message_bytes_to_server": one.message_to_server,
        "message_bytes_per_update": _ratio(one.message_applied, updates),
        "payload_bytes_from_server": one.payload_from_server,
        "emulated_seconds": round(one.seconds, 6),
        "staleness_mean": _ratio(sum(value * times for value, times in one.staleness.items()), updates),
        "pull_seconds": _ratio(sum(step.pull for step in steps), count),
        "compute_seconds": _ratio(sum(step.compute for step in steps), count),
        "push_seconds": _ratio(sum(step.push for step in steps), count),
        "staleness": {str(value): one.staleness[value] for value in sorted(one.staleness)},
        "dropped": dict(sorted(one.dropped.items())),
        "lost": one.lost,
        "died": sorted({str(item["node"]) for item in one.died}),
        "stop_reason": one.stop_reason,
        "evaluations": len(one.evaluations),
    }


def _against(
    base: Mapping[str, Any], variant: Mapping[str, Any], base_traces: Sequence[Trace], traces_: Sequence[Trace]
) -> dict[str, float | None]:
    """How many times less a variant sends than the baseline; None where either diverged or was cut short."""
    sound = base["state"] == variant["state"] == "ok"
    level = min(_best(one) for one in (*base_traces, *traces_)) if sound else None
    ours, theirs = _bytes_until(traces_, level), _bytes_until(base_traces, level)
    return {
        "payload_reduction_per_update": _ratio(base["payload_bytes_per_update"], variant["payload_bytes_per_update"]),
        "message_reduction_per_update": _ratio(base["message_bytes_per_update"], variant["message_bytes_per_update"]),
        "payload_reduction_per_accuracy": _ratio(_per_accuracy(base), _per_accuracy(variant)) if sound else None,
        "common_accuracy": level,
        "payload_reduction_to_common_accuracy": _ratio(theirs, ours),
        "accuracy_gain": variant["final_accuracy"] - base["final_accuracy"] if sound else None,
    }


def _best(one: Trace) -> float:
    return max((item.accuracy for item in one.evaluations), default=0.0)


def _per_accuracy(variant: Mapping[str, Any]) -> float | None:
    return _ratio(variant["payload_bytes_to_server"], variant["final_accuracy"])


def _bytes_until(repeats: Sequence[Trace], level: float | None) -> float | None:
    """Mean payload bytes at the first evaluation that reaches `level`; None unless every repeat reaches it."""
    if level is None:
        return None
    firsts = [next((item.payload_bytes for item in one.evaluations if item.accuracy >= level), None) for one in repeats]
    mean: float | None = _mean(firsts)
    return mean


def _findings(baseline: str | None, variants: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What may be said, in sentences; a diverged or unfinished variant wins nothing and nothing is won over it."""
    said = [
        f"{name} diverged ({_percent(item['final_accuracy'])}, under {DIVERGED * 100:.0f} %): "
        "no win is claimed by it or over it."
        for name, item in variants.items()
        if item["state"] == "diverged"
    ]
    said += [
        f"{name} did not finish: its figures are partial."
        for name, item in variants.items()
        if item["state"] == "incomplete"
    ]
    for name, item in variants.items():
        versus = item["against_baseline"]
        if versus is None or item["state"] != "ok" or variants[str(baseline)]["state"] != "ok":
            continue
        said.append(
            f"{name} ends at {_percent(item['final_accuracy'])}, {_gain(versus['accuracy_gain'])} {baseline} at equal "
            f"emulated time, and sends {_times(versus['payload_reduction_per_update'])} fewer payload bytes an update."
        )
    return said


def _gain(share: float) -> str:
    points = round(share * 100, 1)
    if points == 0:
        return "level with"
    return f"{abs(points):.1f} points {'ahead of' if points > 0 else 'behind'}"


def _percent(share: float | None) -> str:
    return "no evaluation" if share is None else f"{share * 100:.1f} %"


def _times(factor: float | None) -> str:
    return "?" if factor is None else f"{factor:.1f} times"


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _mean(values: Sequence[float | None]) -> Any:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return known[0] if len(known) == 1 else statistics.fmean(known)


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.stdev(known) if len(known) == len(values) and len(known) > 1 else None
