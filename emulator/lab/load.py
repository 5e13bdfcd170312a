"""One look at what this host does: its CPU time and steal, who uses it, who waits for it, its memory and its clocks.

Everything is a counter or a state of /proc at one moment; `emulator.lab.overload` judges two of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from emulator.core import marks
from emulator.core.clock import RealClock, epoch
from emulator.core.lab_id import LabId
from emulator.core.processes import Program, cpu_seconds, programs

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Wait(NamedTuple):
    """A thread's seconds on a CPU, and those for which it could have run and waited (also for its quota)."""

    ran: float
    waited: float


@dataclass(frozen=True)
class Load:
    """`at` is the monotonic clock; `wall` and `boot` (which goes on while the host is suspended) at the same moment.

    `total` and `steal` are CPU seconds of all cores. `outside` are the processes that are not the lab's, by pid and
    start; `threads` those of each node, by thread id. `available` is the share of memory that is free to use,
    `stalled` seconds in which something waited for memory (None = not told), `swapped` bytes moved to and from swap.
    """

    at: float
    wall: float
    boot: float
    cores: int
    total: float = 0.0
    steal: float = 0.0
    outside: Mapping[tuple[int, int], Program] = field(default_factory=dict)
    threads: Mapping[str, Mapping[int, Wait]] = field(default_factory=dict)
    available: float = 1.0
    stalled: float | None = None
    swapped: int = 0


def look(lab: LabId, groups: Mapping[str, Path]) -> Load:
    """Look once. `groups` are the nodes' cgroups in the hierarchy that marks processes; what cannot be read is left
    out, for a monitor must not stop what it watches."""
    nodes = {node: _members(group) for node, group in groups.items()}
    ours = {pid for pids in nodes.values() for pid in pids} | set(_members(marks.mark_root() / lab.cgroup))
    cpu = cpu_seconds()
    return Load(
        at=RealClock().now(),
        wall=epoch(),
        boot=time.clock_gettime(time.CLOCK_BOOTTIME),
        cores=os.cpu_count() or 1,
        total=cpu.total,
        steal=cpu.steal,
        outside=programs(ours | {os.getpid()}),
        threads={node: _waits(pids) for node, pids in nodes.items()},
        available=_available(),
        stalled=_stalled(),
        swapped=_swapped(),
    )


def _members(group: Path) -> list[int]:
    """The processes in a cgroup and those below it; those that cannot be listed are left out."""
    found: list[int] = []
    for directory, _, _ in os.walk(group):
        try:
            found += map(int, Path(directory, "cgroup.procs").read_text().split())
        except (OSError, ValueError):
            continue
    return found


def _waits(pids: Iterable[int]) -> dict[int, Wait]:
    found = {}
    for pid in pids:
        try:
            threads = [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{pid}/task/{thread}/schedstat", "rb", buffering=0) as file:
                    ran, waited, _ = map(int, file.read(128).split())
            except (OSError, ValueError):
                continue  # it has ended, or this kernel counts none
            found[int(thread)] = Wait(ran / 1e9, waited / 1e9)
    return found


def _available() -> float:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    sizes = {words[0]: int(words[1]) for words in lines}
    return sizes.get("MemAvailable:", sizes["MemTotal:"]) / sizes["MemTotal:"]


def _stalled() -> float | None:
    try:
        text = Path("/proc/pressure/memory").read_text()
    except OSError:
        return None  # this kernel has no pressure figures
    return int(text.partition("\n")[0].rpartition("total=")[2]) / 1e6


def _swapped() -> int:
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0] in ("pswpin", "pswpout")) * _PAGE
