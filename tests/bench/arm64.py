"""Whether ARM64 nodes train as amd64 ones do: the same parameters with one worker, the same accuracy with two; and
whether they keep pace. About 25 minutes. Needs root, an engine, emu's images for both.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from emulator.experiment import ExperimentResult, run_experiment
from emulator.experiment.progress import Lines
from emulator.runtimes.docker import engine, image

SHIPPED = Path(__file__).parents[2] / "experiments" / "arm64-mnist.yaml"
TOPOLOGY = """
name: bench-arm64-{workers}
nodes:
  server: {{device: server, role: parameter_server}}
  lan: {{kind: switch}}
  worker: {{count: {workers}, device: rpi-4, role: worker}}
links: [{{from: "*", to: lan, preset: lan}}]
"""
#: largest difference of any parameter, and points of accuracy
PARAMETERS, ACCURACY = 1e-3, 2.0
#: of one worker
LEARNING_RATES = (0.001, 0.002)
#: time scales where no pace is kept: QEMU's nodes are sooner done, and the others' shares fit a busy host
UNPACED = {"arm64": 1.0, "amd64": 4.0}


def main() -> None:
    """Print the table."""
    tags = [f"{image.TRAINING}:{arch}" for arch in ("amd64", "arm64")]
    if os.geteuid() != 0 or not engine.is_there() or not all(image.is_there(tag) for tag in tags):
        print("arm64: needs root, an engine and emu's images (emu images build --arch all)")
        return
    with tempfile.TemporaryDirectory(prefix="emu-bench-") as directory:
        for learning_rate in LEARNING_RATES:
            one_worker(Path(directory), learning_rate)
        two_workers(Path(directory))


def one_worker(directory: Path, learning_rate: float, updates: int = 200) -> None:
    """One worker sees the same batches on either processor, so only its arithmetic can differ.

    At these learning rates a last bit's difference stays small. At 0.02 it grows to 2e-2 within 200 updates on amd64
    alone: where it decides which of two pixels a pooling layer takes, another gradient follows.
    """
    slow = {"asgd": {"exchange": "asgd", "learning_rate": learning_rate}}
    settings = {"max_updates": updates, "budget": "1 h", "evaluate_every": "30 min", "variants": slow}
    found = {arch: _run(directory, arch, 1, UNPACED[arch], settings) for arch in UNPACED}
    kept = {arch: _parameters(result) for arch, (result, _) in found.items()}
    worst = max(float(np.abs(kept["arm64"][name] - value).max()) for name, value in kept["amd64"].items())
    moved = max(float(np.abs(value).max()) for value in kept["amd64"].values())
    print(
        f"one worker, {updates} updates at learning rate {learning_rate:g}: no parameter differs by more than "
        f"{worst:.2e} of up to {moved:.2f} "
        f"(bar {PARAMETERS:g}; {_taken(found)})",
        flush=True,
    )


def two_workers(directory: Path) -> None:
    """The shipped experiment, paced, beside the same on amd64 with three seeds: two workers race, so that batches meet
    other parameters in each run, and only the accuracy can be compared."""
    found = {
        "arm64": _run(directory, "arm64", 2, None),
        "amd64": _run(directory, "amd64", 2, UNPACED["amd64"], repeats=3),
    }
    arm, amd = (result.summary for result, _ in found.values())
    got = (arm["variants"]["asgd"]["final_accuracy"] or 0.0) * 100
    others = [(one["final_accuracy"] or 0.0) * 100 for one in amd["variants"]["asgd"]["repeats"]]
    mean = sum(others) / len(others)
    print(
        f"two workers, {arm['variants']['asgd']['updates']:.0f} updates: arm64 {got:.1f} %, amd64 {mean:.1f} % "
        f"({', '.join(f'{one:.1f}' for one in others)}), {abs(got - mean):.1f} points apart "
        f"(bar {ACCURACY:g}; {_taken(found)})",
        flush=True,
    )
    steps = arm["honesty"]["pacing"]["measured"]["asgd"]
    print(
        f"  pace: a step takes the board {steps['device_s'] * 1e3:.1f} ms, QEMU took {steps['host_s'] * 1e3:.1f}; "
        f"{steps['overran']} of {steps['paced']} overran",
        *(f"marked: {mark}" for mark in arm["honesty"]["marks"]),
        sep="\n  ",
        flush=True,
    )


def _run(
    directory: Path, arch: str, workers: int, time_scale: float | None, settings: Any = None, repeats: int = 1
) -> tuple[ExperimentResult, float]:
    """The shipped experiment on that processor; its result and the real seconds of all."""
    start = time.monotonic()
    topology = directory / f"{workers}.yaml"
    topology.write_text(TOPOLOGY.format(workers=workers))
    result = run_experiment(
        SHIPPED, watcher=Lines(), overrides={"topology": str(topology), **(settings or {})}, time_scale=time_scale,
        arch=arch, runtime="docker", out=directory / "runs", force=True, repeats=repeats,
    )  # fmt: skip
    return result, time.monotonic() - start


def _parameters(result: ExperimentResult) -> dict[str, Any]:
    with np.load(result.directory / "asgd" / "0" / "parameters.npz") as file:
        return {name: file[name] for name in file}


def _taken(found: dict[str, tuple[ExperimentResult, float]]) -> str:
    return ", ".join(f"{arch} in {seconds:.0f} s" for arch, (_, seconds) in found.items())


if __name__ == "__main__":
    main()
