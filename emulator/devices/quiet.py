"""Is this host quiet enough to be measured, and if not, who uses it?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.core.processes import cpu_seconds, programs

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
            said += self.processes or (f"programs that run for a moment use {self.cores:.2f} of a core in all",)
        if self.steal > STEAL * cores:
            said.append(f"the hypervisor gave {self.steal:.2f} cores' time to other guests")
        return ", ".join(said)


class Watch:
    """Watches others' use of the CPU from now on; this process and its descendants are not others."""

    def __init__(self) -> None:
        self._at, self._cpu, self._own = time.monotonic(), cpu_seconds(), sum(os.times()[:4])
        self._programs = programs(set())

    def use(self) -> Use:
        """What others used since the start, those that have ended too; children of ours must have been waited for."""
        seconds = max(1e-3, time.monotonic() - self._at)
        cpu, after = cpu_seconds(), programs(set())
        steal = cpu.steal - self._cpu.steal
        used = (cpu.total - self._cpu.total) - (cpu.idle - self._cpu.idle) - steal
        others = max(0.0, used - (sum(os.times()[:4]) - self._own))
        mine = _family({pid: one.parent for (pid, _), one in after.items()})
        named = []
        for (pid, start), one in after.items():
            before = self._programs.get((pid, start))
            share = (one.own - (before.own if before else 0.0)) / seconds
            if pid not in mine and share > NAMED:
                named.append((share, f"{one.name} (pid {pid}) uses {share:.2f} of a core"))
        return Use(others / seconds, steal / seconds, tuple(text for _, text in sorted(named, reverse=True)[:3]))


def _family(parents: Mapping[int, int]) -> set[int]:
    """This process and those that it started, by what they say of their parents."""
    mine = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
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
