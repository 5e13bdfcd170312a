"""Is this host quiet enough to be measured, and if not, who uses it?"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

#: Cores that others may use, and that a hypervisor may take, while a host counts as quiet. A desktop's background
#: and a monitor's sampling come to less; a busy loop is a whole core. Steal is a share of each core's time.
OTHERS, STEAL = 0.2, 0.05
#: a process under this share of a core is not named
NAMED = 0.05


@dataclass(frozen=True)
class Use:
    """What others used of this host over a time: `cores` by processes that are not ours, `steal` by the hypervisor for
    other guests (cores), and the hungriest `processes` ("python3 (pid 123) uses 0.98 of a core")."""

    cores: float
    steal: float
    processes: tuple[str, ...] = ()

    def why_busy(self, cores: int) -> str:
        """Who makes this host busy, or ""."""
        said: list[str] = []
        if self.cores > OTHERS:
            said += self.processes or (f"processes that have ended used {self.cores:.2f} of a core",)
        if self.steal > STEAL * cores:
            said.append(f"the hypervisor gave {self.steal:.2f} cores' time to other guests")
        return ", ".join(said)


class Watch:
    """Watches others' use of the CPU from now on; this process and its descendants are not others."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._start = self._read()

    def use(self) -> Use:
        """What others used since the start."""
        before, after = self._start, self._read()
        seconds = max(1e-3, after.at - before.at)
        others = (after.used - before.used) - (after.ours - before.ours)
        mine = _family(after)
        hungry = []
        for pid, one in after.processes.items():
            earlier = before.processes.get(pid)
            # One that began later: all of its time; its number may have been another's.
            known = earlier.ticks if earlier is not None and earlier.ticks <= one.ticks else 0
            share = (one.ticks - known) / _HZ / seconds
            if pid not in mine and share > NAMED:
                hungry.append((share, f"{one.name} (pid {pid}) uses {share:.2f} of a core"))
        names = tuple(text for _, text in sorted(hungry, reverse=True)[:3])
        return Use(max(0.0, others) / seconds, (after.stolen - before.stolen) / seconds, names)

    def _read(self) -> _Reading:
        # user nice system idle iowait irq softirq steal; guests' time is counted in user and nice already
        fields = (self._proc / "stat").read_text(encoding="ascii").partition("\n")[0].split()[1:9]
        user, nice, system, _, _, irq, soft, steal = (int(field) / _HZ for field in [*fields, *"00000000"][:8])
        processes = {}
        for entry in self._proc.iterdir():
            if entry.name.isdigit() and (one := _process(entry / "stat")) is not None:
                processes[int(entry.name)] = one
        return _Reading(time.monotonic(), user + nice + system + irq + soft, steal, sum(os.times()[:4]), processes)


_HZ = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Process:
    name: str
    parent: int
    ticks: int


@dataclass(frozen=True)
class _Reading:
    at: float
    used: float
    stolen: float
    ours: float
    processes: dict[int, _Process]


def _process(stat: Path) -> _Process | None:
    try:
        head, _, tail = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")
    except OSError:
        return None  # it has ended
    fields = tail.split()
    return _Process(head.partition("(")[2], int(fields[1]), int(fields[11]) + int(fields[12]))


def _family(reading: _Reading) -> set[int]:
    """This process and those that it started, by what they say of their parents."""
    mine = {os.getpid()}
    while found := {pid for pid, one in reading.processes.items() if one.parent in mine} - mine:
        mine |= found
    return mine


def warnings(sys: Path = Path("/sys")) -> list[str]:
    """What makes this host's speed change from hour to hour: a battery, a clock that follows the load."""
    found = []
    for supply in sorted((sys / "class/power_supply").glob("*")):
        if _text(supply / "type") == "Battery" and _text(supply / "status") == "Discharging":
            found.append(f"it runs on its battery ({supply.name}), and its clock may be held down: plug it in")
    cpufreq = sys / "devices/system/cpu"
    governors = {_text(file) for file in cpufreq.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {"", "performance"}
    if governors:
        found.append(
            f"its clock follows the load (governor {', '.join(sorted(governors))}): "
            "`cpupower frequency-set -g performance` holds it"
        )
    if _text(cpufreq / "intel_pstate/no_turbo") == "0" or _text(cpufreq / "cpufreq/boost") == "1":
        found.append("its clock rises above the nominal one while few cores are busy (turbo), and falls when it is hot")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
