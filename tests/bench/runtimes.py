"""The same experiment, with the same seeds, on embedded nodes and on containers: updates and bytes beside each other.

The shipped experiment for a fraction of its budget, at twice its time scale so that both runtimes have CPU to spare.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from emulator.core.errors import DegradedError
from emulator.core.processor import host_arch
from emulator.runtimes.docker import engine, image
from tests.bench.startup import EMU

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
BUDGET, TIME_SCALE, REPEATS = 90, 0.34, 3
VARIANTS = ("asgd", "adacomp")


def main() -> None:
    """Print the table: means of three runs, and how far apart they lie."""
    tag = f"{image.TRAINING}:{host_arch()}"
    if os.geteuid() != 0 or not engine.is_there() or not image.is_there(tag):
        print("runtimes: needs root, an engine and emu's images (emu images build)")
        return
    runs: dict[str, dict[str, list[dict[str, float]]]] = {"embedded": {}, "docker": {}}
    marks: list[str] = []
    for seed in range(1, REPEATS + 1):  # in turns, so that both see the same machine
        for runtime, found in runs.items():
            figures_of, marked = _run(runtime, seed)
            marks += [f"{runtime}, seed {seed}: {mark}" for mark in marked]
            for name, figures in figures_of.items():
                found.setdefault(name, []).append(figures)
    print(f"{'':10}{'updates per emulated s':>30}{'':>9}{'payload bytes per update':>32}")
    print(f"{'':10}{'embedded':>17}{'docker':>17}{'ratio':>8}{'embedded':>15}{'docker':>14}")
    for name in VARIANTS:
        rates = [[one["updates"] / one["emulated_seconds"] for one in runs[runtime][name]] for runtime in runs]
        sizes = [{one["payload_bytes_per_update"] for one in runs[runtime][name]} for runtime in runs]
        means = [statistics.mean(rate) for rate in rates]
        spread = [f"{mean:9.3f} +-{statistics.stdev(rate):5.2f}" for mean, rate in zip(means, rates, strict=True)]
        size, other = (_sizes(found) for found in sizes)
        print(f"{name:10}{spread[0]:>17}{spread[1]:>17}{means[1] / means[0]:8.3f}{size:>15}{other:>14}")
    print(f"adacomp-mnist, {BUDGET} emulated s at time scale {TIME_SCALE}, means of seeds 1 to {REPEATS}, in turns")
    print(*(f"not as planned: {mark}" for mark in marks), sep="\n")


def _run(runtime: str, seed: int) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The variants' figures of a run, and its marks."""
    options = ["--seed", str(seed), "--runtime", runtime, "--json"]
    with tempfile.TemporaryDirectory() as out:
        file = Path(out) / "adacomp-mnist.json"  # which is YAML too
        file.write_text(json.dumps(_experiment()))
        command = [str(EMU), "experiment", str(file), *options, "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode not in (0, DegradedError.exit_code):
        raise RuntimeError(done.stderr)
    summary = json.loads(done.stdout)
    return summary["variants"], summary["honesty"]["degraded"]


def _experiment() -> dict[str, Any]:
    shipped = EXPERIMENTS / "adacomp-mnist.yaml"
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(shipped)
    return found | {
        "topology": str((EXPERIMENTS / found["topology"]).resolve()),
        "variants": {name: found["variants"][name] for name in VARIANTS},
        "budget": f"{BUDGET} s",
        "evaluate_every": f"{BUDGET} s",
        "evaluate_last": "1 s",
        "time_scale": TIME_SCALE,
    }


def _sizes(seen: set[float]) -> str:
    return " ".join(f"{size:,.0f}" for size in sorted(seen))
