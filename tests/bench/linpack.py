"""HPL on emulated Raspberry Pi 4s against the figures that their profiles were calibrated to, and how four scale.

Prints GFLOPS an emulated second: one node alone, one beside nine that keep their caps busy at the auto time scale, and
four over one at several n. Nothing is asserted. Half an hour; what the nodes' memory and the host allow limits n.
Parts of it are `python -m tests.bench.linpack one` and `... four N...`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.experiment import run_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

#: orders of the system for the speed-up of four nodes
SIZES = (4000, 8000, 16000)
#: runs of one node, whose mean is told
REPEATS = 3
ALONE = """
name: bench-hpl
defaults: {device: DEVICE, calibrate: linpack, uplink: lan}
nodes: {switch: {kind: switch}, pi: {count: 4}}
links: [{from: pi-*, to: switch}]
"""
CROWD = """
name: bench-hpl-crowd
defaults: {device: DEVICE, calibrate: linpack, uplink: lan}
nodes: {switch: {kind: switch}, pi: {}, busy: {count: 9, command: "sh -c 'while :; do :; done'"}}
links: [{from: [pi, busy-*], to: switch}]
"""
EXPERIMENT = """
kind: linpack
topology: topology.yaml
nodes: [1]
n: 8000
time_scale: auto
"""


def measure(topology: str, device: str, repeats: int = 1, **overrides: object) -> dict[str, Any]:
    """The summary of one run."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "topology.yaml").write_text(topology.replace("DEVICE", device), encoding="utf-8")
        Path(folder, "bench.yaml").write_text(EXPERIMENT, encoding="utf-8")
        result = run_experiment(
            Path(folder, "bench.yaml"), out=Path(folder, "runs"), overrides=overrides, repeats=repeats, force=True
        )
        return dict(result.summary)


def main() -> None:
    """Both parts."""
    one()
    four(SIZES)


def one() -> None:
    """One node of each device, alone and in a crowd."""
    for device in ("rpi-4-study", "rpi-4"):
        for name, topology in (("alone", ALONE), ("nine others busy", CROWD)):
            _show(f"{device}, {name}", measure(topology, device, REPEATS))


def four(sizes: Sequence[int]) -> None:
    """Four nodes over one, by order of the system."""
    for n in sizes:
        summary = measure(ALONE, "rpi-4-study", n=n, nodes=[1, 4])
        _show(f"four rpi-4-study, n = {n}", summary)


def _show(what: str, summary: dict[str, Any]) -> None:
    cells = []
    for case in summary["cases"]:
        error = "" if case["error"] is None else f" ({case['error'] * 100:+.1f} %)"
        ratio = "" if case["speedup"] is None or case["nodes"] == 1 else f", {case['speedup']:.2f} times one"
        cells.append(f"{case['nodes']}: {case['flops'] / 1e9:.2f} GFLOPS{error}{ratio}")
    marks = "".join(f"\n    marked: {mark}" for mark in summary["honesty"]["marks"])
    print(f"{what:<32} time scale {summary['time_scale']:g}; {'; '.join(cells)}{marks}", flush=True)


if __name__ == "__main__":
    part, *rest = sys.argv[1:] or ["all"]
    if part == "one":
        one()
    elif part == "four":
        four([int(n) for n in rest] or SIZES)
    else:
        main()
