"""A run of kind linpack: its records -> summary, table and page. Rates are FLOP an emulated second.

A case is one count of nodes. `error` is against the reference of that count: `flops` over it, less 1. `speedup` is over
the case of one node; `reference_speedup` the same of the references. A case whose solution failed HPL's residual check
is "wrong", and no figure of it is compared.
"""

from __future__ import annotations

import statistics
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from emulator.core import record
from emulator.core.errors import ResultError
from emulator.core.words import counted
from emulator.results import honesty, numbers, trace
from emulator.results.figures import Plot
from emulator.results.nodes import use_of
from emulator.results.summary import plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from emulator.core.plan import Plan
    from emulator.results.store import Run
    from emulator.results.trace import Trace

KIND = "linpack"
COLUMNS = (
    "nodes", "grid", "GFLOPS", "reference", "error", "speed-up", "reference's", "time (emulated)", "state",
)  # fmt: skip
METHOD = "HPL's own clock and its own check of the solution (scaled residual under 16), on the first node"
_NEEDED = ("cases", "references", "n", "block", "device", "seed", "repeats", "topology", "host_core")


def is_one(value: Mapping[str, Any]) -> bool:
    """Whether an experiment or a summary is of this kind."""
    return value.get("kind") == KIND


def rebuild(run: Run) -> dict[str, Any]:
    """Write summary.json and report.html from the records, and return the summary; raises ResultError."""
    from emulator.results.report import honesty_rows, page

    summary = summarise(run)
    run.write("summary.json", summary)
    page_text = page(
        "linpack.html.j2",
        summary=summary,
        honesty=honesty_rows(summary),
        columns=COLUMNS,
        rows=[row(case) for case in summary["cases"]],
        sources=sources(summary),
        plots=[plot(summary)],
    )
    run.write_text("report.html", page_text)
    return summary


def summarise(run: Run) -> dict[str, Any]:
    """The summary of a run, also of one cut short. Raises ResultError where records cannot be read."""
    experiment, facts, plan = run.read("experiment.json"), run.read("run.json"), plan_of(run)
    for key in _NEEDED:
        if key not in experiment:
            where = str(run.directory / "experiment.json")
            raise ResultError(f"`{key}` is missing", where=where, fix="remove this damaged run")
    found = _traces(run, experiment)
    cases = [
        _case(case, run, found[case["name"]], plan, experiment) for case in experiment["cases"] if case["name"] in found
    ]
    if not cases:
        raise ResultError("this run has no records", where=str(run.directory), fix="run the experiment again")
    _compare(cases, experiment["references"])
    block = honesty.assemble(facts, experiment, plan, found) | {"evaluation": METHOD}
    wrong = [
        f"{case['nodes']} nodes: the solution failed HPL's residual check" for case in cases if case["state"] == "wrong"
    ]
    busy = experiment["host_core"].get("busy")
    if busy:
        wrong.append(f"HPL's speed on one core of this host was measured while it was busy ({busy})")
    return {
        "version": 1,
        "kind": KIND,
        "name": run.name,
        "run": run.id,
        "state": run.state(),
        "topology": PurePath(experiment["topology"]).stem,
        **{key: experiment[key] for key in ("device", "n", "block", "references", "host_core", "seed", "repeats")},
        "time_scale": plan.time_scale,
        "cases": cases,
        "variants": {},
        "findings": _findings(cases, experiment),
        "honesty": block | {"marks": [*block["marks"], *wrong]},
    }


def _traces(run: Run, experiment: Mapping[str, Any]) -> dict[str, list[Trace]]:
    found = {case["name"]: [trace.read(path) for path in _repeats(run, case["name"])] for case in experiment["cases"]}
    return {name: repeats for name, repeats in found.items() if repeats}


def _repeats(run: Run, case: str) -> list[Path]:
    paths = [path for path in (run.directory / case).glob("*") if path.name.isdigit()]
    return sorted(paths, key=lambda path: int(path.name))


def _case(
    case: Mapping[str, Any], run: Run, traces: Sequence[Trace], plan: Plan, experiment: Mapping[str, Any]
) -> dict[str, Any]:
    repeats = []
    for path, one in zip(_repeats(run, case["name"]), traces, strict=True):
        results = [item for file in path.glob("hpl.jsonl") for item in record.read(file) if item["kind"] == "hpl"]
        repeats.append((results[-1] if results else None, [use.as_dict() for use in use_of(plan, one)]))
    done = [result for result, _ in repeats if result is not None]
    wrong = any(not result["passed"] for result in done)
    rates = [float(result["flops"]) for result in done]
    return {
        "name": case["name"],
        "nodes": case["nodes"],
        "grid": case["grid"],
        "state": "wrong" if wrong else "incomplete" if len(done) < int(experiment["repeats"]) else "ok",
        "flops": statistics.fmean(rates) if rates else None,
        "spread": statistics.stdev(rates) if len(rates) > 1 else None,
        "seconds": statistics.fmean(float(result["seconds"]) for result in done) if done else None,
        "repeats": [
            {key: result[key] for key in ("flops", "seconds", "residual", "passed")} | {"nodes": nodes}
            for result, nodes in repeats
            if result is not None
        ],
    }


def _compare(cases: Sequence[dict[str, Any]], references: Sequence[Mapping[str, Any]]) -> None:
    """Add to each case its reference, and how far off it is."""
    known = {item["nodes"]: item for item in reversed(references)}
    one = next((case for case in cases if case["nodes"] == 1 and case["state"] == "ok"), None)
    for case in cases:
        sound, reference = case["state"] == "ok", known.get(case["nodes"])
        case["reference"] = reference
        case["error"] = case["flops"] / reference["flops"] - 1 if sound and reference else None
        case["speedup"] = case["flops"] / one["flops"] if sound and one else None
        both = reference is not None and 1 in known
        case["reference_speedup"] = reference["flops"] / known[1]["flops"] if both and reference else None


def _findings(cases: Sequence[Mapping[str, Any]], experiment: Mapping[str, Any]) -> list[str]:
    said = []
    for case in cases:
        nodes = counted(case["nodes"], "node")
        reference = case["reference"]
        if case["state"] != "ok":
            said.append(f"{nodes}: {'the solution is wrong' if case['state'] == 'wrong' else 'not finished'}.")
            continue
        if reference is not None:
            how = "calibrated to" if reference["calibrated"] else "only compared with"
            said.append(
                f"{nodes}: {_gflops(case['flops'])} GFLOPS, {case['error'] * 100:+.1f} % against "
                f"{_gflops(reference['flops'])} ({how} it; {reference['source']})."
            )
        if case["nodes"] > 1 and case["speedup"] is not None and case["reference_speedup"]:
            off = case["speedup"] / case["reference_speedup"] - 1
            said.append(
                f"{nodes} are {case['speedup']:.2f} times as fast as one at n = {experiment['n']} (the reference: "
                f"{case['reference_speedup']:.2f}, {off * 100:+.1f} %); the larger n, the nearer to {case['nodes']}."
            )
    return said


def row(case: Mapping[str, Any]) -> tuple[str, ...]:
    """A case as the cells of the results table, in the order of `COLUMNS`."""
    reference = case["reference"]
    spread = "" if case["spread"] is None else f" ± {_gflops(case['spread'])}"
    return (
        str(case["nodes"]),
        "x".join(str(size) for size in case["grid"]),
        numbers.DASH if case["flops"] is None else _gflops(case["flops"]) + spread,
        numbers.DASH if reference is None else _gflops(reference["flops"]),
        numbers.DASH if case["error"] is None else f"{case['error'] * 100:+.1f} %",
        numbers.DASH if case["speedup"] is None else f"{case['speedup']:.2f}",
        numbers.DASH if case["reference_speedup"] is None else f"{case['reference_speedup']:.2f}",
        numbers.seconds(case["seconds"]),
        case["state"],
    )


def sources(summary: Mapping[str, Any]) -> list[str]:
    """Where the references come from, one sentence each."""
    return [
        f"{counted(item['nodes'], 'node')}, {_gflops(item['flops'])} GFLOPS: {item['source']}"
        + (" (the node's cap is set by this figure)" if item["calibrated"] else " (compared only)")
        for item in summary["references"]
    ]


def result(summary: Mapping[str, Any]) -> str:
    """The outcome in a line, for the list of runs."""
    known = [case for case in summary["cases"] if case["flops"] is not None]
    return ", ".join(f"{case['nodes']}: {_gflops(case['flops'])}" for case in known) + " GFLOPS" if known else ""


def plot(summary: Mapping[str, Any]) -> Plot:
    """GFLOPS over nodes, with the references."""
    from emulator.results import style

    with style.settings():
        figure, (axes,) = style.panels()
        done = [case for case in summary["cases"] if case["flops"] is not None]
        nodes = [case["nodes"] for case in done]
        axes.plot(nodes, [case["flops"] / 1e9 for case in done], color=style.colour(0), marker="o", label="emulated")
        known = sorted(summary["references"], key=lambda item: int(item["nodes"]))
        axes.plot(
            [item["nodes"] for item in known], [item["flops"] / 1e9 for item in known],
            color=style.colour(1), linestyle="none", marker="x", label="reference",
        )  # fmt: skip
        axes.set_xlabel("nodes")
        axes.set_ylabel("GFLOPS (emulated)")
        axes.set_xticks(sorted({*nodes, *(int(item["nodes"]) for item in known)}))
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.legend(loc="upper left")
        return Plot("HPL over nodes", style.data_uri(figure), f"HPL at n = {summary['n']}, emulated and measured.")


def _gflops(flops: float) -> str:
    return f"{flops / 1e9:.3g}"
