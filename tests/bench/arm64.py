"""Whether ARM64 nodes train as amd64 ones do: the same parameters with one worker, the same accuracy with two; and
whether they keep pace. About 25 minutes under QEMU, no run over 10. Needs root, an engine, emu's images for both.
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
#: Without their pace QEMU's nodes are sooner done; what they train does not depend on it. The others' is enough for
#: the boards' shares of a busy host.
TIME_SCALE = {"arm64": 1.0, "amd64": 4.0}


def main() -> None:
    """Print the table."""
    tags = [f"{image.TRAINING}:{arch}" for arch in ("amd64", "arm64")]
    if os.geteuid() != 0 or not engine.is_there() or not all(image.is_there(tag) for tag in tags):
        print("arm64: needs root, an engine and emu's images (emu images build --arch all)")
        return
    one_worker()
    two_workers()
    paced()


def one_worker(updates: int = 200) -> None:
    """One worker sees the same batches on either processor, so only its arithmetic can differ."""
    settings = {"max_updates": updates, "budget": "1 h", "evaluate_every": "30 min"}
    found = {arch: _run(arch, 1, settings) for arch in TIME_SCALE}
    kept = {arch: _parameters(result) for arch, (result, _) in found.items()}
    worst = max(float(np.abs(kept["arm64"][name] - value).max()) for name, value in kept["amd64"].items())
    moved = max(float(np.abs(value).max()) for value in kept["amd64"].values())
    print(
        f"one worker, {updates} updates: no parameter differs by more than {worst:.2e} of up to {moved:.2f} "
        f"(bar {PARAMETERS:g}; {_taken(found)})",
        flush=True,
    )


def two_workers(updates: int = 600) -> None:
    """Two workers race, so batches meet other parameters each time; the accuracy is what can be compared."""
    every = {"arm64": "10 s", "amd64": "1 s"}
    found = {
        arch: _run(arch, 2, {"max_updates": updates, "budget": "1 h", "evaluate_every": every[arch]})
        for arch in TIME_SCALE
    }
    got = {arch: (result.variants["asgd"].final_accuracy or 0.0) * 100 for arch, (result, _) in found.items()}
    print(
        f"two workers, {updates} updates: arm64 {got['arm64']:.1f} %, amd64 {got['amd64']:.1f} %, "
        f"{abs(got['arm64'] - got['amd64']):.1f} points apart (bar {ACCURACY:g}; {_taken(found)})",
        flush=True,
    )


def paced() -> None:
    """The shipped experiment."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        result = run_experiment(SHIPPED, watcher=Lines(), runtime="docker", out=Path(directory), force=True)
    steps = result.summary["honesty"]["pacing"]["measured"]["asgd"]
    variant = result.summary["variants"]["asgd"]
    print(
        f"{SHIPPED.stem}: {variant['updates']:.0f} updates, {variant['final_accuracy'] * 100:.1f} %; "
        f"step {steps['device_s'] * 1e3:.1f} ms on the board, of which QEMU took {steps['host_s'] * 1e3:.1f}; "
        f"{steps['overran']} of {steps['paced']} overran; {time.monotonic() - start:.0f} s",
        flush=True,
    )
    print(*(f"  marked: {mark}" for mark in result.marks), sep="\n", flush=True)


def _run(arch: str, workers: int, settings: dict[str, Any]) -> tuple[ExperimentResult, float]:
    """The shipped workload on that processor; its result and the real seconds of all. Its files stay."""
    start = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="emu-bench-arm64-"))
    topology = directory / "topology.yaml"
    topology.write_text(TOPOLOGY.format(workers=workers))
    result = run_experiment(
        SHIPPED, watcher=Lines(), overrides={"topology": str(topology), **settings}, time_scale=TIME_SCALE[arch],
        arch=arch, runtime="docker", out=directory / "runs", force=True,
    )  # fmt: skip
    return result, time.monotonic() - start


def _parameters(result: ExperimentResult) -> dict[str, Any]:
    with np.load(result.directory / "asgd" / "0" / "parameters.npz") as file:
        return {name: file[name] for name in file}


def _taken(found: dict[str, tuple[ExperimentResult, float]]) -> str:
    return ", ".join(f"{arch} in {seconds:.0f} s" for arch, (_, seconds) in found.items())


if __name__ == "__main__":
    main()
