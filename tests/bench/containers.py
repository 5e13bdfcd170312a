"""What a lab of containers costs beside the same number of bare `docker run`, started and removed as many at once.

The bare ones have the same image, pid 1, caps and labels, no network of the engine's either, and nothing is plugged in.
"""

from __future__ import annotations

import os
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
    print(f"{'':16}{'emu up':>8}{'bare':>8}{'ratio':>7}{'emu down':>10}{'bare':>8}{'ratio':>7}")
    for size in SIZES:
        ours, bare = [], []
        for _ in range(RUNS):
            ours.append(lab(size))
            bare.append(runs(size, tag))
        up, down = (
            tuple(statistics.median(getattr(one, way) for one in many) for many in (ours, bare))
            for way in Times._fields
        )
        print(
            f"{size:3} containers  {up[0]:8.2f}{up[1]:8.2f}{up[0] / up[1]:6.2f}x"
            f"{down[0]:10.2f}{down[1]:8.2f}{down[0] / down[1]:6.2f}x",
            flush=True,
        )
    print(f"wall seconds of whole commands, medians of {RUNS}; {engine.PARALLEL} at once; emu's with links and pings")


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
