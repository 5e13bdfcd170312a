"""The only place that reads the time or sleeps.

Emulated time = real time / time_scale: s real seconds pass for one emulated second. Clocks are never faked;
everything that waits is given a scaled real duration instead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

#: a time scale that is to be chosen, as people write it
AUTO = "auto"
#: a time scale as it is asked for: a number, or AUTO; only a Plan's is always a number
TimeScale = float | str


class Clock(Protocol):
    """A monotonic clock in seconds from an origin of its own."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The host's monotonic clock, in real seconds (the same origin in all processes of a boot)."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


@dataclass(frozen=True)
class ScaledClock:
    """Emulated seconds since `origin` (a reading of the host's monotonic clock) under a time scale."""

    time_scale: float
    origin: float

    def now(self) -> float:
        return (time.monotonic() - self.origin) / self.time_scale

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds * self.time_scale)


def timestamp(template: str = "%Y%m%d-%H%M%S") -> str:
    """The wall-clock date and time, for names of runs and for the honesty block; never for measuring."""
    return time.strftime(template)


def epoch() -> float:
    """Seconds since the epoch, for records that outlive a boot."""
    return time.time()


def date(seconds: float) -> str:
    """The local date and time of seconds since the epoch."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
