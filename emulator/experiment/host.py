"""What this host is, and how busy it was: for the honesty block."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("emu-testbed", "numpy", "torch")


def describe() -> dict[str, Any]:
    """CPU, cores, memory in bytes, kernel and versions of this host."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": pages * size,
        "kernel": platform.release(),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


class BusyMeter:
    """Share of all cores in use between two readings, from /proc/stat: `busy`, and niced `background` apart."""

    def __init__(self) -> None:
        self._before = self._read()

    def reading(self) -> tuple[float, float]:
        """(busy, background) since the last reading; time stolen by a hypervisor counts as busy."""
        now = self._read()
        user, nice, system, idle, iowait, *rest = (b - a for a, b in zip(self._before, now, strict=True))
        self._before = now
        total = user + nice + system + idle + iowait + sum(rest)
        if total <= 0:
            return 0.0, 0.0
        return (user + system + sum(rest)) / total, nice / total

    @staticmethod
    def _read() -> list[int]:
        # user nice system idle iowait irq softirq steal; the guests' time is counted in user and nice already
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
        return [int(field) for field in first.split()[1:9]]
