"""A kernel's speed on this host: of one core alone, of one among busy ones, and of all cores together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Speed:
    """Rates in `unit`. `one`: one thread, the other cores idle. `loaded`: one thread while every core runs the same
    (the memory and the clock are then shared). `all`: one program with a thread for each core, in total.

    `spread` is how far the middle round of `one` was below the best. `busy` says who used the host meanwhile ("" =
    nobody), `when` is seconds since the epoch.
    """

    unit: str
    one: float
    loaded: float
    all: float
    spread: float = 0.0
    busy: str = ""
    when: float = 0.0

    @staticmethod
    def plain(one: float, cores: int, unit: str = "FLOP/s") -> Speed:
        """That of a host whose cores do not disturb each other, and that loses nothing by threads."""
        return Speed(unit, one, one, one * cores)

    @staticmethod
    def from_json(raw: Any) -> Speed:
        """Read back what `asdict` made; raises KeyError, TypeError or ValueError for anything else."""
        one, loaded, total = (raw[name] for name in ("one", "loaded", "all"))
        for rate in (one, loaded, total):
            if not isinstance(rate, float) or not 0.0 < rate < 1e18:
                raise ValueError(f"{rate!r} is no rate")
        unit, busy, when = str(raw["unit"]), str(raw["busy"]), float(raw["when"])
        return Speed(unit, one, loaded, total, float(raw["spread"]), busy, when)

    def core(self, threads: int, busy: float, cores: int) -> float:
        """The rate of each core for one program of so many threads, while `busy` cores (with its own) are in use.

        In between what was measured (1 and all cores) it is taken to be linear. What was measured on a busy host tells
        only of one core: there the best round stands, but threads that wait for each other came out 5 times too slow.
        """
        if cores < 2 or self.busy:
            return self.one
        share = (min(cores, max(threads, busy, 1.0)) - 1) / (cores - 1)
        together = min(1.0, self.all / (cores * self.loaded))
        efficiency = 1 - (1 - together) * (min(threads, cores) - 1) / (cores - 1)
        return (self.one + (self.loaded - self.one) * share) * efficiency

    def cpus(self, rate: float, cores: int, busy: float = 1.0) -> float:
        """Host cores that do `rate`, by the fewest threads that can; more than `cores` where the host is too slow."""
        for threads in range(1, cores + 1):
            core = self.core(threads, busy, cores)
            if rate <= core * threads:
                return rate / core
        return rate / self.core(cores, busy, cores)
