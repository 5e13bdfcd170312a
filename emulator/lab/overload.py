"""The overload monitor: was the host able to do what it was planned to do, and if not, where, when and by whose doing?

Pure functions on readings. A window of about five seconds (or all of a shorter run) is held against limits, so that a
blip marks nothing and a thief does not go unseen.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.core.clock import RealClock
from emulator.core.errors import EmuError
from emulator.devices import costs
from emulator.lab.load import Wait, look

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.core.plan import Plan
    from emulator.core.processes import Program
    from emulator.lab.lab import Lab, LabStats
    from emulator.lab.load import Load

#: real seconds that are judged together, and the least that are judged at all
WINDOW, LEAST = 5.0, 0.5
#: share of all cores' time that the hypervisor may give to others
STEAL = 0.02
#: host cores that programs outside the lab may use
OUTSIDE = 0.15
#: share of the CPU time due to a node under its cap that it may lack, while it could have run for most of a window
LACK, COULD_RUN = 0.5, 0.5
#: seconds by which the counters of a thread and of its node, read one after another, may differ
COUNTED_APART = 0.1
#: share of memory that must be free to use while something waits for memory for more than this share of the time
AVAILABLE, STALLED = 0.1, 0.05
#: bytes a second to and from swap
SWAP = 1 << 20
#: the process that takes over orphans
_INIT = 1
#: seconds by which the wall clock may be set, by which the host may have slept, and by which a reading may be late
SET, SLEPT, STOOD = 0.5, 0.1, 3.0


class Overload(NamedTuple):
    """One limit that was passed: `node` is the node that suffered (empty = all), `value` and `limit` in one unit."""

    cause: str
    node: str
    value: float
    limit: float
    what: str
    fix: str


@dataclass(frozen=True)
class Reading:
    """A look at the host, CPU seconds used by each node so far, and how late packets came lately (real seconds)."""

    load: Load
    cpu: Mapping[str, float] = field(default_factory=dict)
    late: float | None = None


def groups(lab: Lab) -> dict[str, Path]:
    """The cgroups that mark the processes of the lab's nodes; a node that has died has none."""
    found = {}
    for node in lab.plan.machines:
        with contextlib.suppress(EmuError):
            found[node.name] = Path(lab.enter(node.name).cgroups[0]).parent
    return found


def read(lab: Lab, stats: LabStats, nodes: Mapping[str, Path]) -> Reading:
    """A reading of a lab whose counters were just read; `nodes` are its `groups`."""
    late = stats.health.lateness_p99
    cpu = {name: float(usage.cpu) for name, usage in stats.usage.items()}
    return Reading(look(lab.id, nodes), cpu, None if late is None else float(late))


def now(lab: Lab, seconds: float = 0.3) -> list[Overload]:
    """What is wrong within so short a time from now on, by the same limits: a look, no judgement of a run."""
    if lab.runtime.name == "fake":
        return []
    nodes = groups(lab)
    before = read(lab, lab.stats(), nodes)
    RealClock().sleep(seconds)
    return list(judge(before, read(lab, lab.stats(), nodes), lab.plan))


class Monitor:
    """Judges readings one after another, for one Plan. `due` is the real seconds between them."""

    def __init__(self, plan: Plan, due: float) -> None:
        self._plan = plan
        self._due = due
        self._readings: deque[Reading] = deque()

    @property
    def length(self) -> float:
        """Real seconds of the window that ends with the latest reading."""
        return self._readings[-1].load.at - self._readings[0].load.at if self._readings else 0.0

    def take(self, reading: Reading, *, last: bool = False) -> list[Overload]:
        """What is wrong in the window that ends with this reading; before a window is full only at the `last` one.

        What happens at a moment (a clock that was set, a host that slept) is found at once.
        """
        found = list(jumps(self._readings[-1].load, reading.load, self._due)) if self._readings else []
        self._readings.append(reading)
        while len(self._readings) > 2 and reading.load.at - self._readings[1].load.at >= WINDOW:
            self._readings.popleft()
        first, before = self._readings[0], self._readings[max(0, len(self._readings) - 2)]
        if self.length >= WINDOW or (last and self.length >= LEAST):
            found += judge(first, reading, self._plan)
        if last and self.length < WINDOW and before.load.at - first.load.at >= LEAST:
            found += starved(first, before, self._plan)  # at the end its threads may have gone
        return found


def judge(a: Reading, b: Reading, plan: Plan) -> Iterator[Overload]:
    """The limits that were passed between two readings."""
    seconds = b.load.at - a.load.at
    yield from _stolen(a.load, b.load)
    yield from _outside(a.load, b.load, seconds)
    yield from starved(a, b, plan)
    yield from _late(b, plan)
    yield from _memory(a.load, b.load, seconds)


def jumps(a: Load, b: Load, due: float) -> Iterator[Overload]:
    """Clocks that jumped between two readings, and a host that stood still."""
    seconds = b.at - a.at
    slept = (b.boot - a.boot) - seconds
    if slept > SLEPT:
        yield Overload(
            "suspended", "", slept, SLEPT, f"the host was suspended for {slept:.1f} s", "keep it awake, and run again"
        )
    moved = (b.wall - a.wall) - seconds - max(0.0, slept)
    if abs(moved) > SET:
        yield Overload(
            "clock", "", abs(moved), SET, f"the host's wall clock was set by {moved:+.1f} s",
            "let it be set before a run; programs that read the time of day saw it",
        )  # fmt: skip
    if seconds - due > STOOD:
        yield Overload(
            "stood still", "", seconds - due, STOOD, f"emu itself could not run for {seconds - due:.1f} s",
            "run on a host that is not paused or that loaded",
        )  # fmt: skip


def _stolen(a: Load, b: Load) -> Iterator[Overload]:
    total = b.total - a.total
    share = (b.steal - a.steal) / total if total > 0 else 0.0
    if share > STEAL:
        yield Overload(
            "steal", "", share, STEAL,
            f"the hypervisor gave {share:.1%} of the host's CPU time to others (limit {STEAL:.0%})",
            "run when the machine below is idle, or on one of your own",
        )  # fmt: skip


def _outside(a: Load, b: Load, seconds: float) -> Iterator[Overload]:
    # While a process of the lab ends its cgroup does not list it any more, and it looks like a program outside.
    ours = {thread for threads in a.threads.values() for thread in threads}
    used = {pid: cpu for pid, cpu in outside(a.outside, b.outside).items() if pid not in ours}
    cores = sum(used.values()) / seconds
    if cores > OUTSIDE:
        names = {pid: program.name for (pid, _), program in (*a.outside.items(), *b.outside.items())}
        most = sorted(used.items(), key=lambda item: -item[1])[:3]
        who = ", ".join(
            f"{names[pid]} (pid {pid}) {cpu / seconds:.2f}" for pid, cpu in most if cpu > 0.1 * cores * seconds
        )
        yield Overload(
            "outside", "", cores, OUTSIDE,
            f"programs outside the lab used {cores:.2f} host cores (limit {OUTSIDE:g}): {who}",
            "end them, or run when they have ended",
        )  # fmt: skip


def outside(a: Mapping[tuple[int, int], Program], b: Mapping[tuple[int, int], Program]) -> dict[int, float]:
    """CPU seconds of each process outside between two looks, that of short-lived children with the parent's.

    A child that has ended is in its parent's `children` with all it ever used, its own children included, and theirs;
    what was seen of them before is taken off where it arrived: at the nearest ancestor that lives. What init
    inherits is left out: nobody can say whose it was.
    """
    used: defaultdict[int, float] = defaultdict(float)
    seen: defaultdict[int, float] = defaultdict(float)
    ended = {key[0]: program for key, program in a.items() if key not in b}
    for program in ended.values():
        ancestor = program.parent
        while ancestor in ended:
            ancestor = ended[ancestor].parent
        seen[ancestor] += program.own + program.children
    for key, program in b.items():
        before = a.get(key)
        used[key[0]] += program.own - (before.own if before else 0.0)
        if before and key[0] != _INIT:
            used[key[0]] += max(0.0, program.children - before.children - seen[key[0]])
    return {pid: cpu for pid, cpu in used.items() if cpu > 0}


def starved(a: Reading, b: Reading, plan: Plan) -> Iterator[Overload]:
    """The nodes that could have run under their caps, and were not let."""
    seconds = b.load.at - a.load.at
    for node in plan.machines:
        if node.name not in b.cpu or node.name not in a.cpu:
            continue
        got = b.cpu[node.name] - a.cpu[node.name]
        able = runnable(a.load.threads.get(node.name, {}), b.load.threads.get(node.name, {}), seconds, got)
        due = min(node.quota, 1.0) * able
        if able > COULD_RUN * seconds and got < (1 - LACK) * due:
            yield Overload(
                "starved", node.name, 1 - got / due, LACK,
                f"it lacked {1 - got / due:.0%} of the CPU time due to it under its cap (limit {LACK:.0%})",
                "use a larger time scale, or fewer nodes",
            )  # fmt: skip


def runnable(a: Mapping[int, Wait], b: Mapping[int, Wait], seconds: float, got: float) -> float:
    """Seconds for which a node's busiest thread ran, or could have and waited, for its quota or for others.

    `got` is the CPU time of the whole node. A thread that seems to have run for longer is left out: while a process
    ends, what is read of its last thread can hold what the others had run and waited in all their lives.
    """
    spans = []
    for thread, wait in b.items():
        before = a.get(thread, Wait(0.0, 0.0))
        if wait.ran - before.ran <= got + COUNTED_APART:
            spans.append(wait.ran - before.ran + wait.waited - before.waited)
    return min(seconds, max(spans, default=0.0))


def _late(b: Reading, plan: Plan) -> Iterator[Overload]:
    if b.late is None:
        return
    late, allowed = b.late / plan.time_scale, costs.lateness_allowed(plan)
    if late > allowed:
        yield Overload(
            "lateness", "", late, allowed,
            f"1 % of packets came {late * 1e3:.1f} ms or more too late (emulated; limit {allowed * 1e3:.3g} ms)",
            "use a larger time scale, or a host with less to do",
        )  # fmt: skip


def _memory(a: Load, b: Load, seconds: float) -> Iterator[Overload]:
    stalled = 0.0 if a.stalled is None or b.stalled is None else (b.stalled - a.stalled) / seconds
    if stalled > STALLED and b.available < AVAILABLE:
        yield Overload(
            "memory", "", stalled, STALLED,
            f"programs waited for memory {stalled:.0%} of the time, while {b.available:.0%} of the host's was free",
            "give the nodes less memory, or end other programs",
        )  # fmt: skip
    moved = (b.swapped - a.swapped) / seconds
    if moved > SWAP:
        yield Overload(
            "swap", "", moved, SWAP, f"{moved / 2**20:.1f} MiB a second went to or from swap",
            "give the nodes less memory, or end other programs",
        )  # fmt: skip
