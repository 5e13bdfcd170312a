"""The time scale's promises, measured: is the overload monitor right, do ten nodes keep one node's pace at `auto`, and
are an experiment's figures the same at other time scales?

`python -m tests.bench --only scale --quick` takes about 20 minutes; without --quick the budgets are longer. Parts of it
are `python -m tests.bench.scale monitor RUNS`, `... ten BUDGET` and `... scales BUDGET REPEATS SCALE...`. Run it on a
host that does nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from emulator.experiment import ExperimentResult, run_experiment

ROOT = Path(__file__).parents[2]
#: emulated seconds of budget for `scales` and `ten`, and the runs of each kind for `monitor` and `scales`
BUDGET, TEN_BUDGET, RUNS, REPEATS = 60, 30, 20, 5
QUICK_BUDGET, QUICK_TEN_BUDGET, QUICK_RUNS, QUICK_REPEATS = 30, 15, 5, 2
#: what one node computes, and ten: a LAN so quick that nearly all of a worker's time is its step
LAN = """
name: scale-COUNT
nodes:
  server: {device: server, cpus: 1, role: parameter_server}
  worker: {device: rpi-4, role: worker, count: COUNT}
  hub: {kind: switch}
links:
  - {from: "*", to: hub, rate: 1 Gbit, delay: 1 ms}
"""


def main() -> None:
    """All three."""
    if os.geteuid() != 0:
        print("scale: needs root (sudo make bench)")
        return
    quick = bool(os.environ.get("EMU_BENCH_QUICK"))
    monitor(QUICK_RUNS if quick else RUNS)
    ten(QUICK_TEN_BUDGET if quick else TEN_BUDGET)
    scales((0.5, 1, 2), QUICK_BUDGET if quick else BUDGET, QUICK_REPEATS if quick else REPEATS)


def monitor(runs: int) -> None:
    """Runs of `quick`, undisturbed and with a busy loop beside them: which were marked degraded?"""
    for what, disturbed in (("undisturbed", False), ("beside a busy loop", True)):
        marked, named, steals = 0, 0, []
        for _ in range(runs):
            before = _cpu()
            result = _disturbed(disturbed)
            total, steal = (after - then for after, then in zip(_cpu(), before, strict=True))
            steals.append(steal / total)
            marked += bool(result.degraded)
            named += any("programs outside the lab" in mark for mark in result.degraded)
            if bool(result.degraded) != disturbed:
                print(f"    not as it should be (steal {steals[-1]:.1%}): {result.degraded}")
        print(
            f"  {what}: {marked} of {runs} marked degraded ({named} for programs outside); "
            f"steal {max(steals):.1%} at most",
            flush=True,
        )


def _disturbed(disturbed: bool) -> ExperimentResult:
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if disturbed else None
    try:
        return _run(ROOT / "experiments" / "quick.yaml")
    finally:
        if loop is not None:
            loop.kill()
            loop.wait()


def ten(budget: int) -> None:
    """A compute step's emulated time on one node alone, and the mean of ten that compute at once at auto's scale."""
    with tempfile.TemporaryDirectory() as directory:
        many = _run(_file(Path(directory), 10, budget), time_scale="auto")
        scale = float(many.summary["time_scale"])
        print(f"  {many.summary['honesty']['notes'][0]}")
        for name, one in (("the same time scale", scale), ("time scale 1", 1.0)):
            alone = _run(_file(Path(directory), 1, budget), time_scale=one)
            a, b = (result.summary["variants"]["asgd"]["compute_seconds"] for result in (alone, many))
            busy = many.summary["honesty"]["host_busy"]["mean"]
            print(
                f"  compute step: one node at {name} {a * 1e3:.2f} ms, ten at {scale:g} {b * 1e3:.2f} ms "
                f"({b / a - 1:+.1%}), emulated; expected {_expected(many) * 1e3:.2f} ms; host {busy:.0%} busy, "
                f"marks {many.marks}",
                flush=True,
            )


def _file(directory: Path, workers: int, budget: int) -> Path:
    topology = directory / f"lan-{workers}.yaml"
    topology.write_text(LAN.replace("COUNT", str(workers)))
    path = directory / f"train-{workers}.yaml"
    path.write_text(
        f"topology: {topology}\nworkload: {{model: mnist-cnn, dataset: synthetic-mnist, batch: 64, sharding: iid}}\n"
        f"variants: {{asgd: {{exchange: adacomp, c: 0.01, learning_rate: 0.02}}}}\n"
        f"budget: {budget} s\nevaluate_every: {budget} s\n"
    )
    return path


def _expected(result: ExperimentResult) -> float:
    return float(result.summary["honesty"]["compute"]["expected"])


def scales(factors: tuple[float, ...], budget: int, repeats: int) -> None:
    """adacomp-mnist with a short budget at several time scales: means over repeats, against the largest scale's."""
    overrides = {"evaluate_every": f"{budget / 3} s", "evaluate_last": f"{budget / 20} s", "budget": f"{budget} s"}
    found: dict[float, Any] = {}
    for factor in sorted(factors, reverse=True):
        result = _run("adacomp-mnist", time_scale=factor, repeats=repeats, overrides=overrides)
        found[factor] = result.summary["variants"]
        base = found[max(found)]
        for name, item in found[factor].items():
            figures = {
                "updates/s": item["updates"] / item["emulated_seconds"],
                "MB": item["message_bytes_to_server"] / 1e6,
                "accuracy": item["final_accuracy"],
            }
            known = base[name]
            usual = {
                "updates/s": known["updates"] / known["emulated_seconds"],
                "MB": known["message_bytes_to_server"] / 1e6,
                "accuracy": known["final_accuracy"],
            }
            text = ", ".join(f"{key} {value:.3f} ({value / usual[key] - 1:+.1%})" for key, value in figures.items())
            print(f"  adacomp-mnist at {factor:g}, {name}, {budget} s, mean of {repeats}: {text}", flush=True)
        print(f"    marks at {factor:g}: {result.marks}", flush=True)


def _run(experiment: str | Path, **options: Any) -> ExperimentResult:
    with tempfile.TemporaryDirectory() as out:
        return run_experiment(experiment, out=Path(out), runtime="embedded", force=True, **options)


def _cpu() -> tuple[float, float]:
    """Ticks of all cores so far, and those stolen."""
    fields = [int(field) for field in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return float(sum(fields)), float(fields[7])


if __name__ == "__main__":
    part, *rest = sys.argv[1:] or ["all"]
    if part == "monitor":
        monitor(int(rest[0]) if rest else RUNS)
    elif part == "ten":
        ten(int(rest[0]) if rest else TEN_BUDGET)
    elif part == "scales":
        budget, repeats, *factors = rest or [str(BUDGET), str(REPEATS), "0.5", "1", "2"]
        scales(tuple(map(float, factors)), int(budget), int(repeats))
    else:
        main()
