"""/proc/meminfo and /proc/stat of the nodes, kept current by their keeper: what a node uses, read from its cgroups.

The files are in memory, and each node has its own bound over the kernel's. The keeper holds them open: it alone can
write them, also when their directory is out of its sight.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.runtimes import cgroups, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: seconds between two refreshes: at least the first, and so many for each node, so that a keeper stays under 1 % of a
#: core
_SHORTEST, _EACH = 1.0, 0.02


@dataclass(frozen=True)
class Source:
    """Where a node's figures come from: files of its cgroups, and how to read them.

    `speed` is the seconds that the node's processors are busy for one second of a host core; `memory` the cap in
    bytes; `processors` how many it shows.
    """

    usage: str
    cap: str
    details: str
    processor_time: str
    memory: int
    processors: int
    speed: float


class Gauge:
    """One node's two files, made under `place`."""

    def __init__(self, place: str, source: Source) -> None:
        self._source = source
        self._meminfo, self._stat = (_make(f"{place}.{name}") for name in ("meminfo", "stat"))
        self._boot = _boot()
        self._write(0, 0, 0, 0.0)

    def refresh(self) -> None:
        """Read the node's cgroups and show what they say; raises OSError when they have gone."""
        source = self._source
        used = int(cgroups.read(source.usage))
        table = dict(line.split()[:2] for line in cgroups.read(source.details).splitlines())
        cap = cgroups.read(source.cap).strip()
        # Pages of a warmed process lower the cap by what they take (`NamespacedNodes.charge_shared`): the node's, too.
        shared = max(source.memory - int(cap), 0) if cap.isdigit() else 0
        if "total_cache" in table:  # version 1
            shmem, cache = int(table.get("total_shmem", 0)), int(table["total_cache"])
        else:
            shmem, cache = int(table["shmem"]), int(table["file"])
        self._write(used + shared, max(cache - shmem, 0), shmem, cgroups.seconds(source.processor_time))

    def _write(self, used: int, cache: int, shmem: int, busy: float) -> None:
        source = self._source
        _replace(self._meminfo, identity.meminfo(source.memory, min(used, source.memory), cache, shmem))
        up = RealClock().now()
        _replace(self._stat, identity.stat(source.processors, busy * source.speed, up, self._boot))


def keep_current(gauges: Sequence[Gauge], sleep: Callable[[float], None]) -> None:
    """Refresh the gauges for as long as any of their nodes is there, `sleep` seconds apart."""
    alive = list(gauges)
    while alive:
        sleep(max(_SHORTEST, _EACH * len(alive)))
        alive = [gauge for gauge in alive if _refreshed(gauge)]


def _refreshed(gauge: Gauge) -> bool:
    try:
        gauge.refresh()
    except OSError:  # the node is being removed, and its groups with it
        return False
    return True


def _make(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o444)


def _replace(file: int, text: str) -> None:
    os.pwrite(file, text.encode(), 0)


def _boot() -> int:
    with open(identity.STAT) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("btime"))
