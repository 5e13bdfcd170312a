"""Jitter, packet by packet: deviations from a direction's delay, in units of its jitter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.core.spread import Spread
    from emulator.links.model import Uniform


def deviations(spread: Spread | None, rng: Uniform) -> Callable[[], float]:
    """A source of deviations: uniform from -1 to 1 where `spread` is None."""
    if spread is None or (spread.name == "uniform" and not spread.samples and not spread.correlation):
        return lambda: 2.0 * rng.random() - 1.0
    table = spread.table()
    size = len(table)
    if not spread.correlation:
        return lambda: table[int(rng.random() * size)]
    walk = _Correlated(spread.correlation, rng)
    return lambda: table[min(size - 1, int(walk.rank() * size))]


class _Correlated:
    """Ranks of which each depends on the one before: a Gaussian copula over an autoregressive process of order 1."""

    def __init__(self, correlation: float, rng: Uniform) -> None:
        self._rng = rng
        self._keep, self._new = correlation, math.sqrt(1.0 - correlation * correlation)
        self._at = self._normal()

    def rank(self) -> float:
        """The next rank, from 0 to 1."""
        self._at = self._keep * self._at + self._new * self._normal()
        return 0.5 * math.erfc(-self._at / math.sqrt(2.0))

    def _normal(self) -> float:
        """A standard normal number (G. E. P. Box and M. E. Muller, Ann. Math. Stat. 29, 1958)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self._rng.random()))
        return radius * math.cos(2.0 * math.pi * self._rng.random())
