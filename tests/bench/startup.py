"""How long a whole command takes: `emu up` until every node answers a ping, and `emu down`; Mininet's beside it.

Mininet (Debian package `mininet`) makes bare hosts on one Linux bridge, without shaping, caps or file systems of
their own, and its time ends when `start` returns, before any ping. It runs in namespaces of its own, which take all
that it leaves with them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

EMU = Path(sys.executable).with_name("emu")
HERE = Path(__file__).parent
WAN, STAR = HERE.parents[1] / "topologies" / "wan-10.yaml", HERE / "star-100.yaml"
RUNS = 5
_LIMIT = 120
_PYTHON = "/usr/bin/python3"


class Times(NamedTuple):
    """Wall seconds of one start and one stop."""

    up: float
    down: float


def main() -> None:
    """Print the table: medians of five, with the spread."""
    if os.geteuid() != 0:
        print("startup: needs root (sudo make bench)")
        return
    compared = has_mininet()
    rows = []
    for label, file, hosts in (("wan-10, 11 nodes", WAN, 10), ("star, 100 nodes", STAR, 100)):
        ours, theirs = [], []
        # In turns, so that whatever else the host does meets both.
        for _ in range(RUNS):
            ours.append(emu(file))
            if compared:
                theirs.append(mininet(hosts))
        rows.append((label, ours, theirs))
    print(f"{'':18}{'emu up':>16}{'emu down':>16}{'Mininet up':>18}{'Mininet down':>18}{'ratio up, down':>18}")
    for label, ours, theirs in rows:
        print(f"{label:18}{_shown(ours):>32}{_shown(theirs) if theirs else '-':>36}{_ratio(ours, theirs):>18}")
    print(
        f"wall seconds of whole commands, median of {RUNS} (fastest-slowest); Mininet: hosts only, no shaping, no ping"
    )
    if not compared:
        print("Mininet is not installed: `apt-get install mininet bridge-utils` to see its times beside ours")


def emu(file: Path) -> Times:
    """Start and stop the lab of a topology file."""
    name = f"bench-{file.stem}"
    start = time.monotonic()
    subprocess.run([EMU, "up", file, "--name", name], check=True, capture_output=True, timeout=_LIMIT)
    started = time.monotonic()
    subprocess.run([EMU, "down", name], check=True, capture_output=True, timeout=_LIMIT)
    return Times(started - start, time.monotonic() - started)


def has_mininet() -> bool:
    """Whether Mininet and what its LinuxBridge needs are there."""
    probe = "import mininet.net, shutil, sys; sys.exit(shutil.which('brctl') is None)"
    return subprocess.run([_PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0


def mininet(hosts: int) -> Times:
    """Start and stop Mininet's star of that many hosts."""
    own = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    start = time.monotonic()
    done = subprocess.run(
        [*own, _PYTHON, HERE / "mininet_star.py", str(hosts)],
        check=True,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    end = time.monotonic()
    started = float(done.stdout.split()[-1])
    return Times(started - start, end - started)


def _shown(runs: list[Times]) -> str:
    return "".join(
        f"{statistics.median(values):8.2f} ({min(values):.2f}-{max(values):.2f})"
        for values in (([run.up for run in runs]), [run.down for run in runs])
    )


def _ratio(ours: list[Times], theirs: list[Times]) -> str:
    if not theirs:
        return "-"
    up, down = (
        statistics.median(getattr(run, name) for run in theirs) / statistics.median(getattr(run, name) for run in ours)
        for name in ("up", "down")
    )
    return f"{up:.1f}x, {down:.1f}x"


if __name__ == "__main__":
    main()
