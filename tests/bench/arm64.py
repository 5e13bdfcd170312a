"""Whether ARM64 nodes train as amd64 ones do: the same parameters with one worker, the same accuracy with two.

About 15 minutes under QEMU. Needs root, an engine, and emu's images for both processors.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np

from emulator.experiment import ExperimentResult, run_experiment
from emulator.experiment.progress import Lines
from emulator.runtimes.docker import engine, image

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "experiments" / "arm64-mnist.yaml"
TOPOLOGY = """
name: bench-arm64-{workers}
nodes:
  server: {{device: server, role: parameter_server}}
  lan: {{kind: switch}}
  worker: {{count: {workers}, device: rpi-4, role: worker}}
links: [{{from: "*", to: lan, preset: lan}}]
"""
UPDATES = 200
#: largest difference of any parameter, and points of accuracy
PARAMETERS, ACCURACY = 1e-3, 2.0


def main() -> None:
    """Print the table; the amd64 runs are not slowed down, for nothing here depends on time."""
    tags = [f"{image.TRAINING}:{arch}" for arch in ("amd64", "arm64")]
    if os.geteuid() != 0 or not engine.is_there() or not all(image.is_there(tag) for tag in tags):
        print("arm64: needs root, an engine and emu's images (emu images build --arch all)")
        return
    one_worker()
    two_workers()


def one_worker() -> None:
    """One worker sees the same parameters and the same batches on either processor, so only arithmetic differs."""
    changes = {
        "max_updates": UPDATES, "budget": "1 h", "evaluate_every": "30 min", "variants": {"asgd": _ASGD},
    }  # fmt: skip
    # Without its pace a step takes what QEMU takes, which is sooner done and ends in the same parameters.
    found = {arch: run(arch, 1, 1.0, changes) for arch in ("amd64", "arm64")}
    kept = {}
    for arch, (result, _) in found.items():
        with np.load(result.directory / "asgd" / "0" / "parameters.npz") as file:
            kept[arch] = {name: file[name] for name in file}
    worst = {name: float(np.abs(kept["arm64"][name] - value).max()) for name, value in kept["amd64"].items()}
    moved = max(float(np.abs(value).max()) for value in kept["amd64"].values())
    taken = ", ".join(f"{arch} {seconds:.0f} s" for arch, (_, seconds) in found.items())
    print(
        f"one worker, {UPDATES} updates: parameters differ by at most {max(worst.values()):.2e} "
        f"(largest {moved:.2f}; bar {PARAMETERS:g}; {taken})",
        flush=True,
    )


def two_workers() -> None:
    """The shipped experiment, paced, beside the same on amd64."""
    for name, arm, amd in _pairs(run("arm64", 2), run("amd64", 2, 1.0)):
        print(f"two workers, {name}: {arm}; {amd} (bar {ACCURACY:g} points)", flush=True)


def run(
    arch: str, workers: int, time_scale: float | None = None, changes: object = None
) -> tuple[ExperimentResult, float]:
    """The shipped experiment on that processor; its result and the real seconds of all."""
    start = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="emu-bench-arm64-"))
    topology = directory / "topology.yaml"
    topology.write_text(TOPOLOGY.format(workers=workers))
    settings = {"topology": str(topology), **(changes if isinstance(changes, dict) else {})}
    result = run_experiment(
        EXPERIMENT, watcher=Lines(), overrides=settings, time_scale=time_scale, arch=arch, runtime="docker",
        out=directory / "runs", force=True,
    )  # fmt: skip
    return result, time.monotonic() - start


_ASGD = {"exchange": "asgd", "learning_rate": 0.02}


def _pairs(*found: tuple[ExperimentResult, float]) -> list[tuple[str, ...]]:
    rows = []
    for name in found[0][0].variants:
        words = []
        for (result, seconds), arch in zip(found, ("arm64", "amd64"), strict=True):
            item, steps = result.variants[name], (result.summary["honesty"]["pacing"] or {}).get("measured", {})
            paced = f", {steps[name]['overran']} of {steps[name]['paced']} steps overran" if name in steps else ""
            words.append(
                f"{arch} {(item.final_accuracy or 0) * 100:.1f} % after {item.updates:.0f} updates "
                f"in {seconds:.0f} s of all variants{paced}"
            )
        rows.append((name, *words))
    return rows


if __name__ == "__main__":
    main()
