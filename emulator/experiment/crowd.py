"""How much longer compute steps take because several workers compute at once: an expectation, by counting.

Each worker computes for a share of the time, its `duty`, and then wants its cap of host cores. While all that are
computing want more than there is, each gets its part and takes longer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: host cores are counted in steps of this size
_GRAIN = 0.02


@dataclass(frozen=True)
class Computing:
    """A worker: the host cores it wants while it computes, and the share of time for which it does."""

    cores: float
    duty: float


def stretch(workers: Iterable[Computing], room: float) -> float:
    """How many times longer the worst placed kind of worker's step takes, on average, than if it were alone.

    `room` is the host cores that are left for all of them. Workers compute independently of each other.
    """
    kinds = Counter(workers)
    return max((_stretch(kinds, kind, room) for kind in kinds), default=1.0)


def _stretch(kinds: Mapping[Computing, int], mine: Computing, room: float) -> float:
    others = Counter(kinds)
    others[mine] -= 1
    own = min(mine.cores, room)
    return sum(chance * max(1.0, (own + demand * _GRAIN) / room) for demand, chance in _demand(others).items())


def _demand(workers: Mapping[Computing, int]) -> dict[int, float]:
    """How likely each sum of wanted cores is, in steps."""
    found = {0: 1.0}
    for worker, count in workers.items():
        step = round(worker.cores / _GRAIN)
        for _ in range(count):
            following: defaultdict[int, float] = defaultdict(
                float, {demand: chance * (1 - worker.duty) for demand, chance in found.items()}
            )
            for demand, chance in found.items():
                following[demand + step] += chance * worker.duty
            found = {demand: chance for demand, chance in following.items() if chance > 1e-9}
    return found
