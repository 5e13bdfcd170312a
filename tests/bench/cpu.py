"""What a node under a CPU cap gets: CPU time, the work that it does with it, how long it stands still, and a burst.

Prints, for a node capped at x host cores, both CPU time and work, as parts of what was asked: work is what its
programs did beside what the same programs do in the same node without a cap. Alone, and beside nodes that keep four
fifths of the host busy. Bounds are those of docs/limits.md; nothing is asserted. `--only cpu` of `make bench`.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.core.units import Share, Size
from emulator.devices.delivery import known
from emulator.runtimes import awake, caps
from emulator.runtimes.base import Command
from emulator.runtimes.embedded import EmbeddedRuntime

SHARES = (0.05, 0.1, 0.15, 0.25, 0.5, 0.8, 1.0, 1.6)
SECONDS, REPEATS = 1.0, 3
#: seconds; the kernel takes CPU time from a quota at each tick (CONFIG_HZ=250)
TICK = 0.004
#: programs by name: each sets `piece`, about a millisecond of work
PROGRAMS = {
    "as calibrated": "from emulator.runtimes.delivery import work; piece = work()",
    "interpreter": "def piece():\n    x = 0\n    for i in range(15_000): x += i * i",
    "dgemm 384": "import numpy\na = numpy.random.rand(384, 384)\ndef piece(): a @ a",
    "conv2d": "import torch\nm, x = torch.nn.Conv2d(16, 32, 3), torch.randn(4, 16, 28, 28)\n"
    "def piece(): m(x).sum().backward()",
}
#: says every few milliseconds how many pieces are done, with the monotonic time, and where it stood still
LOOP = """
{program}
import time, json, signal
clock, out, done, said = time.monotonic, [], 0, 0.0
going = True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGUSR1, stop)
print("ready", flush=True)
while going:
    piece()
    done += 1
    if clock() - said > 0.002:
        said = clock()
        out.append((said, done))
print(json.dumps(out), flush=True)
"""
BURST = """
import json, time
cpu, clock, out = time.process_time, time.monotonic, []
for _ in range(150):
    start, end = clock(), cpu() + 0.005
    while cpu() < end: pass
    out.append(clock() - start)
print(json.dumps(out))
"""


@dataclass(frozen=True)
class Figures:
    """`time` is the CPU time that was got and `work` the work that was done, both beside what was asked;
    `stall_p99` is in seconds."""

    time: float
    work: float
    stall_p99: float


class Bench:
    """A lab of one node and some busy ones."""

    def __init__(self, share: float, others: tuple[float, ...]) -> None:
        threads = math.ceil(share)
        self.node = NodePlan("n-0", host_cpus=Share(share), memory=Size(1 << 30), worth=known().at(share / threads))
        self.rest = tuple(
            NodePlan(f"n-{number}", host_cpus=Share(size), memory=Size(256 << 20))
            for number, size in enumerate(others, 1)
        )
        self.runtime = EmbeddedRuntime()
        self.lab = LabId.of(f"bench-cpu-{os.getpid()}")

    @contextmanager
    def up(self) -> Iterator[Bench]:
        nodes = (self.node, *self.rest)
        self.runtime.create(self.lab, Plan(self.lab.name, nodes, ()), nodes, lambda _kind, _name: None)
        try:
            yield self
        finally:
            self.runtime.remove(self.lab)

    def figures(self, program: str) -> Figures:
        """Run the program, one copy for each core or part of one, without the cap, then with it."""
        groups, share = self.runtime.groups(self.lab, "n-0"), float(self.node.host_cpus)
        caps.lift(groups)
        running = [self._start(LOOP.format(program=PROGRAMS[program])) for _ in range(math.ceil(share))]
        for _, stream in running:
            stream.readline()
        free = [self._window(SECONDS / 3)]
        caps.set_all(groups, self.node)
        busy = [
            self.runtime.start(self.lab, node.name, Command(("sh", "-c", "while :; do :; done"))) for node in self.rest
        ]
        time.sleep(0.3)
        before = self.runtime.usage(self.lab, ["n-0"])["n-0"]
        capped = self._window(SECONDS)
        after = self.runtime.usage(self.lab, ["n-0"])["n-0"]
        for process in busy:
            process.send_signal(9)
        caps.lift(groups)
        time.sleep(0.05)
        free.append(self._window(SECONDS / 3))
        for process, _ in running:
            process.send_signal(10)
        traces = [json.loads(stream.readline()) for _, stream in running]
        reference = statistics.mean(_rate(traces, window) for window in free) / len(running)
        spent = float(after.cpu - before.cpu) / (capped[1] - capped[0])
        inside = [[at for at, _ in trace if capped[0] <= at <= capped[1]] for trace in traces]
        stalls = sorted(b - a for trace in inside for a, b in pairwise(trace) if b - a > 0.006)
        p99 = stalls[min(int(len(stalls) * 0.99), len(stalls) - 1)] if stalls else 0.0
        return Figures(spent / share, _rate(traces, capped) / reference / share, p99)

    def bursts(self) -> list[float]:
        """Seconds that 5 ms of CPU time took, again and again."""
        process, stream = self._start(BURST)
        found = sorted(json.loads(stream.readline())[10:])
        process.wait(30)
        return found

    def _start(self, code: str):  # type: ignore[no-untyped-def]
        read, write = os.pipe()
        environment = (("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1"))
        process = self.runtime.start(
            self.lab, "n-0", Command((sys.executable, "-c", code), env=environment, stdout=write, stderr=2)
        )
        os.close(write)
        return process, os.fdopen(read)

    def _window(self, seconds: float) -> tuple[float, float]:
        start = time.monotonic()
        time.sleep(seconds)
        return start, time.monotonic()


def _rate(traces: list[list[tuple[float, int]]], window: tuple[float, float]) -> float:
    """Pieces a second in all, within a window of monotonic time."""
    total = 0.0
    for trace in traces:
        before = max((done for at, done in trace if at <= window[0]), default=0)
        total += max((done for at, done in trace if at <= window[1]), default=0) - before
    return total / (window[1] - window[0])


def measure(share: float, others: tuple[float, ...] = (), program: str = "as calibrated") -> Figures:
    """Make the lab, measure, take it down again."""
    with Bench(share, others).up() as bench:
        return bench.figures(program)


def bound(share: float) -> float:
    """The stall at p99 that is promised: 1.3 ticks' worth of waiting, and one period."""
    period = max(0.010, 0.001 / share)
    return 1.3 * TICK * (1 / share - 1) + period


def _row(share: float, others: tuple[float, ...], program: str) -> str:
    runs = [measure(share, others, program) for _ in range(REPEATS)]
    middle = {name: statistics.median(getattr(run, name) for run in runs) for name in ("time", "work", "stall_p99")}
    off = [f"{100 * (middle[name] - 1):+8.1f} %" for name in ("time", "work")]
    spread = f"{100 * (min(run.work for run in runs) - 1):+.0f} to {100 * (max(run.work for run in runs) - 1):+.0f} %"
    return (
        f"{share:6.2f}  {off[0]}  {off[1]}  {spread:>15}  {middle['stall_p99'] * 1e3:8.1f}  {bound(share) * 1e3:8.1f}"
    )


def main() -> None:
    """Print the tables."""
    if os.geteuid() != 0:
        print("cpu: needs root")
        return
    print(f"CPU caps, median of {REPEATS} runs of {SECONDS:g} s; load of this host now: {os.getloadavg()[0]:.2f}")
    print(
        f"worth of capped time: {known().points or 'not measured (emu calibrate)'}; {awake.problem() or 'kept awake'}"
    )
    header = "     x   CPU time       work  lowest, highest  stall p99 ms   bound ms"
    cores = os.cpu_count() or 1
    tables = [
        ("alone", SHARES, (), "as calibrated"),
        ("others busy to 80 % of the host", (0.05, 0.1, 0.25, 0.4), (0.2 * cores,) * 4, "as calibrated"),
        *((f"alone, {name}", (0.1, 0.25, 1.0), (), name) for name in PROGRAMS if name != "as calibrated"),
    ]
    for title, shares, others, program in tables:
        print(f"{title}\n{header}")
        for share in shares:
            print(_row(share, others, program), flush=True)
    with Bench(0.25, ()).up() as bench:
        took = bench.bursts()
    parts = " / ".join(f"{1e3 * took[int(len(took) * part)]:.1f}" for part in (0.5, 0.95, 0.99))
    print(f"5 ms of CPU time at 0.25 cores take {parts} ms (p50 / p95 / p99; ideal 20)")


if __name__ == "__main__":
    main()
