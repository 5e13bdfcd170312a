"""This host: its cores, its memory, and what its cores do, measured kernel by kernel when it is first asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import HostError
from emulator.core.processor import host_arch
from emulator.core.units import Size
from emulator.devices.speed import Speed

if TYPE_CHECKING:
    from emulator.devices.workload import Own

#: what stands in for a measurement where the speed does not matter, as when a file is only checked
NOMINAL_GFLOPS = 50.0


@dataclass(frozen=True)
class HostSpeed:
    """This host. `gflops` is one core's SGEMM; `cached` = that one was read from the cache, not measured now. `arch` is
    the processor, as images name it: programs for another one are emulated here. `auto` is an experiment's own step, by
    which nodes are then compared that leave it to emu (`calibrate: auto`). `measure` gives the speeds of kernels
    by name; without it (as in checks and tests) every kernel is as fast as `gflops` says, on every core alike.
    """

    gflops: float
    cores: int
    memory: Size
    cached: bool = False
    model: str = ""
    arch: str = field(default_factory=host_arch)
    auto: Own | None = None
    measure: Callable[[Iterable[str]], dict[str, Speed]] | None = field(default=None, compare=False, repr=False)
    known: dict[str, Speed] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        how = "measured before" if self.cached else "measured now"
        return f"{self.cores} cores of {self.gflops:.1f} GFLOPS (SGEMM, {how}), {self.memory / 2**30:.1f} GiB"

    def speed(self, kernel: str) -> Speed:
        """That kernel's speed here, measured if it was not yet; raises HostError if it cannot be."""
        if self.measure is None:
            return self.known.get(kernel) or Speed.plain(self.gflops * 1e9, self.cores)
        if kernel not in self.known:
            self.known.update(self.measure([kernel]))
        return self.known[kernel]


def calibration() -> HostSpeed:
    """This host's worth: about 3 s the first time, 1 ms after. Raises HostError if it cannot be measured.

    Only single-precision matrix multiplication is measured by this; other kernels when they are asked for.
    """
    from emulator.devices import calibration as measuring

    fresh: list[str] = []
    speeds = measuring.speeds(["sgemm"], fresh=fresh)
    return HostSpeed(
        speeds["sgemm"].one / 1e9,
        cores_here(),
        memory_here(),
        cached=not fresh,
        model=cpu_model(),
        measure=measuring.speeds,
        known=dict(speeds),
    )


def nominal() -> HostSpeed:
    """This host's cores and memory with a made-up speed; for checking files, never for caps."""
    return HostSpeed(NOMINAL_GFLOPS, cores_here(), memory_here(), model=cpu_model())


def cores_here() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_model() -> str:
    """The processor's name as the kernel shows it."""
    match = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1].strip() if match else os.uname().machine


def memory_here() -> Size:
    """All of this host's memory. Raises HostError where /proc does not say."""
    match = re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if match is None:
        raise HostError("/proc/meminfo shows no MemTotal", fix="mount /proc")
    return Size(int(match[1]) * 1024)
