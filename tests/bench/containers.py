"""What a lab of containers costs beside the same number of bare `docker run`, started and removed as many at once.

The bare ones have the same image, pid 1, caps and labels, no network of the engine's either, and nothing is plugged in.
Shown for the whole commands `emu up` and `emu down`, and for the runtime's part of them: the containers alone.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emulator.core.processor import host_arch
from emulator.runtimes.docker import engine, image
from tests.bench.startup import EMU, Times

SIZES, RUNS = (10, 50), 3
#: as an rpi-4 of this kind of machine gets them
_CAPS = ("--cpu-period=10000", "--cpu-quota=2500", "--memory=256m", "--memory-swap=256m", "--pids-limit=4096")


def main() -> None:
    """Print the table: medians of three, in turns."""
    tag = f"{image.PLAIN}:{host_arch()}"
    if os.geteuid() != 0 or not engine.is_there() or not image.is_there(tag):
        print("containers: needs root, an engine and emu's images (emu images build base)")
        return
    print(f"{'':16}{'bare':>7}{'emu up':>9}{'':>7}{'alone':>8}{'':>7}{'bare':>9}{'emu down':>10}{'':>7}{'alone':>8}")
    for size in SIZES:
        bare, whole, alone = [], [], []
        for _ in range(RUNS):
            bare.append(runs(size, tag))
            whole.append(lab(size))
            alone.append(containers(size))
        cells = []
        for way in Times._fields:
            base, up, own = (statistics.median(getattr(one, way) for one in many) for many in (bare, whole, alone))
            cells.append(f"{base:7.2f}{up:9.2f}{up / base:6.2f}x{own:8.2f}{own / base:6.2f}x")
        print(f"{size:3} containers  {cells[0]}  {cells[1]}", flush=True)
    print(f"wall seconds, medians of {RUNS}, and ratios to bare; {engine.PARALLEL} at once; emu up has links and pings")


def containers(size: int) -> Times:
    """As many nodes made and removed by the runtime, without links."""
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.core.units import Share, Size
    from emulator.runtimes.docker.runtime import DockerRuntime

    nodes = tuple(NodePlan(f"n-{n}", host_cpus=Share(0.25), memory=Size(256 << 20)) for n in range(1, size + 1))
    runtime, lab_id = DockerRuntime(), LabId.of("bench-containers")
    plan = Plan(lab_id.name, nodes, ())
    lab_id.directory.mkdir(parents=True)
    start = time.monotonic()
    try:
        runtime.create(lab_id, plan, nodes, lambda _kind, _name: None)
        started = time.monotonic()
    finally:
        runtime.remove(lab_id)
        shutil.rmtree(lab_id.directory, ignore_errors=True)
    return Times(started - start, time.monotonic() - started)


def lab(size: int) -> Times:
    """A star of that many machines, up and down."""
    nodes = f"nodes: {{core: {{kind: switch}}, n: {{count: {size}, memory: 256 MiB}}}}"
    text = f"{nodes}\nlinks: [{{from: n-*, to: core, preset: lan}}]\n"
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "bench-containers.yaml"
        file.write_text(text)
        start = time.monotonic()
        _run([str(EMU), "up", str(file), "--runtime", "docker"])
        started = time.monotonic()
        _run([str(EMU), "down", file.stem])
        return Times(started - start, time.monotonic() - started)


def runs(size: int, tag: str) -> Times:
    """As many bare containers, made and removed by Docker's own command."""
    names = [f"emu-bench-bare-{number}" for number in range(size)]
    options = ["--detach", "--init", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", *_CAPS]
    start = time.monotonic()
    _at_once([["docker", "run", *options, f"--name={name}", tag, "sleep", "infinity"] for name in names])
    started = time.monotonic()
    _at_once([["docker", "rm", "--force", "--volumes", name] for name in names])
    return Times(started - start, time.monotonic() - started)


def _at_once(commands: Sequence[Sequence[str]]) -> None:
    with ThreadPoolExecutor(engine.PARALLEL) as pool:
        list(pool.map(_run, commands))


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=300)


if __name__ == "__main__":
    main()
