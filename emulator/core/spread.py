"""How a delay spreads about its mean: the shapes that jitter can have, as tables of equally likely deviations.

Each table has mean 0 and, but for `uniform` (which fills -1 to 1), standard deviation 1, cut at 4 as the kernel's are
(its netem takes 16 bits for a deviation, in units of 1/8192). So `jitter` is half of the width of a uniform spread,
and the standard deviation of any other. `tc` ships tables of the same names with other means and widths, so its
pareto adds to the delay; these add nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: the shapes known by name
NAMES = ("uniform", "normal", "pareto", "paretonormal")
#: a deviation's limit, in standard deviations
WIDEST = 4.0
#: equally likely deviations in a table (tc's own have as many), and in one made of somebody's samples
SIZE, KEPT = 4096, 256
#: the exponent of the Pareto distribution, as in tc's table: no variance below 2, and rarely far off above 4
_PARETO = 3.0


@dataclass(frozen=True)
class Spread:
    """A shape by name, or one's own `samples`: up to `KEPT` deviations in ascending order, mean 0 and deviation 1.

    `correlation` is that of successive packets' deviations (0 to below 1).
    """

    name: str = "uniform"
    samples: tuple[float, ...] = ()
    correlation: float = 0.0

    def table(self) -> Sequence[float]:
        """Equally likely deviations in ascending order, in units of the jitter."""
        return self.samples or named(self.name)


@lru_cache(maxsize=4)
def named(name: str) -> tuple[float, ...]:
    """The table of a shape in `NAMES`; raises KeyError for another."""
    quantile = _QUANTILES[name]
    values = [quantile((index + 0.5) / SIZE) for index in range(SIZE)]
    return tuple(values if name == "uniform" else normalized(values))


def of_samples(delays: Sequence[float]) -> tuple[float, float, tuple[float, ...]]:
    """The mean, the standard deviation, and the samples of a `Spread`, of one's own delays.

    Raises ValueError where there are fewer than two delays, or all are alike.
    """
    if len(delays) < 2:
        raise ValueError("a distribution needs at least two samples")
    mean, deviation = _moments(delays)
    if deviation <= 1e-12 * abs(mean):
        raise ValueError("all samples of the distribution are alike; leave the jitter out")
    return mean, deviation, tuple(round(value, 5) for value in normalized(_thinned(sorted(delays))))


def normalized(values: Sequence[float]) -> list[float]:
    """The values moved and stretched to mean 0 and deviation 1, none beyond `WIDEST`."""
    kept = list(values)
    for _ in range(100):  # what is cut off changes mean and deviation a little, each time less
        mean, deviation = _moments(kept)
        kept = [(value - mean) / deviation for value in kept]
        if max(map(abs, kept)) <= WIDEST * (1 + 1e-6):
            break
        kept = [max(-WIDEST, min(WIDEST, value)) for value in kept]
    return [max(-WIDEST, min(WIDEST, value)) for value in kept]


def _thinned(ordered: Sequence[float]) -> Sequence[float]:
    """No more than `KEPT` of them, at equal ranks."""
    if len(ordered) <= KEPT:
        return ordered
    return [ordered[int((index + 0.5) * len(ordered) / KEPT)] for index in range(KEPT)]


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _normal(share: float) -> float:
    from statistics import NormalDist  # late: its imports cost more than most commands, and few need it

    return NormalDist().inv_cdf(share)


def _pareto(share: float) -> float:
    return float((1.0 - share) ** (-1.0 / _PARETO))


#: `tc`'s "paretonormal" weighs the two the same way; here each rank of one goes with the same rank of the other
_QUANTILES: dict[str, Callable[[float], float]] = {
    "uniform": lambda share: 2.0 * share - 1.0,
    "normal": _normal,
    "pareto": _pareto,
    "paretonormal": lambda share: 0.25 * _normal(share) + 0.75 * _pareto(share) * 2 / math.sqrt(3),
}
