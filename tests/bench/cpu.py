"""How exactly a node gets the CPU that it was promised, and how long it stands still for it.

Prints, for a node capped at x host cores, the CPU time it got, and the stalls that a busy loop in it saw: alone,
and beside nodes that keep four fifths of the host busy. Bounds are those of docs/limits.md; nothing is asserted.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.core.units import Share, Size
from emulator.runtimes.base import Command
from emulator.runtimes.embedded import EmbeddedRuntime

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SECONDS, REPEATS = 2.0, 3
#: seconds; the kernel takes CPU time from a quota at each tick (CONFIG_HZ=250)
TICK = 0.004
SPIN = """
import json, time
clock, end = time.perf_counter, time.perf_counter() + {seconds}
last, stalls = clock(), []
while last < end:
    now = clock()
    if now - last > 0.001:
        stalls.append(now - last)
    last = now
print(json.dumps(stalls))
"""


@dataclass(frozen=True)
class Figures:
    """`got` is host cores; `stall_p99` seconds."""

    got: float
    stall_p99: float


def measure(share: float, others: tuple[float, ...] = (), seconds: float = SECONDS) -> Figures:
    """Make a lab of one node of `share` (and busy others), spin in it, and take it down again."""
    lab = LabId.of(f"bench-cpu-{os.getpid()}")
    nodes = tuple(
        NodePlan(f"n-{number}", host_cpus=Share(size), memory=Size(256 << 20))
        for number, size in enumerate((share, *others))
    )
    runtime = EmbeddedRuntime()
    runtime.create(lab, Plan(lab.name, nodes, ()), nodes, lambda _kind, _name: None)
    try:
        for node in nodes[1:]:
            runtime.start(lab, node.name, Command(("sh", "-c", "while :; do :; done")))
        return _spin(runtime, lab, seconds)
    finally:
        runtime.remove(lab)


def _spin(runtime: Any, lab: LabId, seconds: float) -> Figures:
    read, write = os.pipe()
    code = SPIN.format(seconds=seconds + 1)
    process = runtime.start(lab, "n-0", Command((sys.executable, "-S", "-c", code), stdout=write))
    os.close(write)
    time.sleep(0.5)
    before, start = runtime.usage(lab, ["n-0"])["n-0"], time.monotonic()
    time.sleep(seconds)
    after, end = runtime.usage(lab, ["n-0"])["n-0"], time.monotonic()
    with os.fdopen(read) as stream:
        stalls = sorted(json.loads(stream.read()) or [0.0])
    process.wait(30)
    return Figures((after.cpu - before.cpu) / (end - start), stalls[min(int(len(stalls) * 0.99), len(stalls) - 1)])


def bound(share: float) -> float:
    """The stall at p99 that is promised: 1.3 ticks' worth of waiting, and one period."""
    period = max(0.010, 0.001 / share)
    return 1.3 * TICK * (1 / share - 1) + period


def _row(share: float, others: tuple[float, ...]) -> str:
    runs = [measure(share, others) for _ in range(REPEATS)]
    got = statistics.median(run.got for run in runs)
    stall = statistics.median(run.stall_p99 for run in runs)
    return f"{share:6.2f}  {got:8.4f}  {100 * (got / share - 1):+7.2f} %  {stall * 1e3:8.1f}  {bound(share) * 1e3:8.1f}"


def main() -> None:
    """Print both tables."""
    if os.geteuid() != 0:
        print("cpu: needs root")
        return
    print(f"CPU caps, median of {REPEATS} runs of {SECONDS:g} s; load of this host now: {os.getloadavg()[0]:.2f}")
    header = "     x   got  off by   stall p99 ms   bound ms"
    cores = os.cpu_count() or 1
    for title, shares, others in (
        ("alone", SHARES, ()),
        ("others busy to 80 % of the host", (0.1, 0.25, 0.5), (0.2 * cores,) * 4),
    ):
        print(f"{title}\n{header}")
        for share in shares:
            print(_row(share, others), flush=True)


if __name__ == "__main__":
    main()
