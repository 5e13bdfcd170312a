"""Who uses this host's CPUs: its time and steal, and every process's, as /proc has them at one moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")
#: the process that the kernel's own threads are children of
_KTHREADD = 2


class Program(NamedTuple):
    """A process of the host: its parent, CPU seconds of itself and of its children that have ended, and its name."""

    parent: int
    own: float
    children: float
    name: str


class Cpu(NamedTuple):
    """CPU seconds of all cores since boot: in all, those that were idle, and those that a hypervisor gave to others."""

    total: float
    idle: float
    steal: float


def cpu_seconds() -> Cpu:
    """The host's, now."""
    # user nice system idle iowait irq softirq steal; guests are counted in user and nice already
    fields = [int(field) for field in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return Cpu(sum(fields) / _TICK, (fields[3] + fields[4]) / _TICK, fields[7] / _TICK)


def programs(but: set[int]) -> dict[tuple[int, int], Program]:
    """All processes but these and the kernel's own, by pid and start."""
    found = {}
    for entry in (path.name for path in Path("/proc").iterdir() if path.name.isdigit()):
        if int(entry) in but:
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb", buffering=0) as file:
                head, _, tail = file.read(1024).decode(errors="replace").rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        fields = tail.split()
        parent = int(fields[1])
        if parent == _KTHREADD or int(entry) == _KTHREADD:
            continue
        user, system, child_user, child_system = map(int, fields[11:15])
        program = Program(parent, (user + system) / _TICK, (child_user + child_system) / _TICK, head.partition("(")[2])
        found[int(entry), int(fields[19])] = program
    return found
