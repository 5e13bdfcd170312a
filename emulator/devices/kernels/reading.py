"""A kernel's work, and how its speed is read off a number of rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: a figure of fewer rounds is chance
ROUNDS = 3


@dataclass(frozen=True)
class Work:
    """One round: `run` does `amount` units ("FLOP", "B", "op", "iteration", "million instructions"); `size` says how
    large the problem is."""

    run: Callable[[], object]
    amount: float
    unit: str
    size: str


@dataclass(frozen=True)
class Reading:
    """A kernel's speed in `unit` ("FLOP/s", "B/s", ...).

    `best` is the fastest round's: what the machine can do, for whatever else runs only ever slows a round.
    `median` is the round in the middle: far below `best` on a disturbed machine. `mean` is all rounds' work over all
    their time: the only one that means anything under a CPU quota, where single rounds run at full speed or wait.
    """

    unit: str
    size: str
    best: float
    median: float
    mean: float
    rounds: int
    seconds: float

    @staticmethod
    def from_json(raw: dict[str, Any]) -> Reading:
        """Read back what the program printed; raises KeyError, TypeError or ValueError for anything else."""
        best, median, mean = (float(raw[name]) for name in ("best", "median", "mean"))
        if not all(0 < rate < float("inf") for rate in (best, median, mean)):
            raise ValueError(f"these are not rates: {best}, {median}, {mean}")
        return Reading(
            str(raw["unit"]), str(raw["size"]), best, median, mean, int(raw["rounds"]), float(raw["seconds"])
        )


def measure(work: Work, seconds: float) -> Reading:
    """Repeat a round, after one that does not count (it loads code, data and clock), for about `seconds`."""
    work.run()
    took: list[float] = []
    begin = now = time.perf_counter()
    while len(took) < ROUNDS or now - begin < seconds:
        start = time.perf_counter()
        work.run()
        now = time.perf_counter()
        took.append(now - start)
    return Reading(
        f"{work.unit}/s",
        work.size,
        best=work.amount / min(took),
        median=work.amount / statistics.median(took),
        mean=work.amount * len(took) / sum(took),
        rounds=len(took),
        seconds=round(now - begin, 6),
    )


def added(readings: Sequence[Reading]) -> Reading:
    """What copies did together that ran at once: rates add up; rounds are the fewest, seconds the longest.

    `best` is the sum of each copy's, which may be of different moments.
    """
    first = readings[0]
    return Reading(
        first.unit,
        first.size,
        best=sum(one.best for one in readings),
        median=sum(one.median for one in readings),
        mean=sum(one.mean for one in readings),
        rounds=min(one.rounds for one in readings),
        seconds=max(one.seconds for one in readings),
    )
