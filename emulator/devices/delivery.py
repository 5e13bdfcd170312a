"""What a second of CPU time under a cap is worth on this host, beside one without a cap: measured once and kept.

A processor that stood still while its node was held back starts again at a lower clock, and with caches that others
have used. The smaller a node's share of a processor is, the longer it stands still, and the more of its time goes by
slowly. `emulator.runtimes.delivery` measures it; a Plan's nodes get that much more CPU time.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.cache import user_cache
from emulator.devices.host import cpu_model

if TYPE_CHECKING:
    from collections.abc import Mapping

#: kinds of work: products of large matrices, and the convolutions of a training step
MATRIX, TRAINING = "matrix", "training"
KINDS = (MATRIX, TRAINING)
#: shares of one processor at which it is measured, and those that are kept
SHARES = (0.08, 0.15, 0.3)
KEPT = (0.05, 0.1, 0.2, 0.4)
#: seconds of the quota's period (`runtimes.caps`): a share's part of it is how long a node runs at a stretch
_PERIOD = 0.01
#: seconds in which a processor may come back to its speed, as the fit tries them
_RETURNS = tuple(5e-5 * 1.1**step for step in range(45))
#: shares from which on less than a twentieth is lost
SMALL = 0.4
#: no measurement of an undisturbed host came out lower; one that does is a disturbed one's
LEAST = 0.55
#: steps towards the quota that does a work; each brings the error down about tenfold
_STEPS = 4


@dataclass(frozen=True)
class Curve:
    """Worth by share of a processor, in between by the share's logarithm. Without points all is worth 1."""

    points: tuple[tuple[float, float], ...] = ()

    def at(self, share: float) -> float:
        """What a second is worth under a quota of that share; 1 from a whole one on, the first point's below it."""
        points = [*self.points, (1.0, 1.0)]
        if share <= points[0][0]:
            return points[0][1]
        for (low, worth), (high, next_worth) in pairwise(points):
            if share <= high:
                part = math.log(share / low) / math.log(high / low)
                return worth + part * (next_worth - worth)
        return 1.0

    def for_work(self, share: float) -> float:
        """What a second is worth under the quota that does the work of `share` uncapped, which is a larger one."""
        worth = 1.0
        for _ in range(_STEPS):
            worth = self.at(share / worth)
        return worth


def fit(measured: Mapping[float, float]) -> Curve:
    """A curve through measurements of worth by share, by least squares.

    A processor that starts again lacks a part of its speed, which comes back exponentially; what that loses over a
    stretch t is part x (r / t) x (1 - exp(-t / r)), with the time r of coming back. Of noisy readings, all of them
    determine the two numbers together.
    """
    best, points = math.inf, dict.fromkeys(KEPT, 1.0)
    for returns in _RETURNS:
        shape = {share: _lost(share, returns) for share in (*measured, *KEPT)}
        part = sum(shape[share] * (1 - worth) for share, worth in measured.items())
        part = min(1.0, max(0.0, part / sum(shape[share] ** 2 for share in measured)))
        off = sum((1 - worth - part * shape[share]) ** 2 for share, worth in measured.items())
        if off < best:
            best, points = off, {share: 1 - part * shape[share] for share in KEPT}
    return smooth(points)


def _lost(share: float, returns: float) -> float:
    stretch = share * _PERIOD / returns
    return (1 - math.exp(-stretch)) / stretch


def smooth(points: Mapping[float, float]) -> Curve:
    """The curve of these points: no worth over 1 or under `LEAST`, and none under that of a smaller share."""
    worth, kept = LEAST, []
    for share, value in sorted(points.items()):
        worth = min(1.0, max(worth, value))
        kept.append((share, round(worth, 4)))
    return Curve(tuple(kept))


@cache
def known(kind: str = TRAINING) -> Curve:
    """The curve of that kind of work that was measured on this host, with this kernel; one without points where none
    was."""
    try:
        points = json.loads(_file().read_text())[_key()][kind]
        return smooth({float(share): float(worth) for share, worth in points})
    except (OSError, ValueError, KeyError, TypeError):
        return Curve()


def keep(curves: Mapping[str, Curve]) -> None:
    """Keep curves by kind for `known`; where the cache cannot be written nothing is corrected, which is harmless."""
    path = _file()
    temporary = path.with_name(f".delivery-{os.getpid()}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps({_key(): {kind: curve.points for kind, curve in curves.items()}}))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return
    known.cache_clear()


def _file() -> Path:
    return user_cache() / "delivery.json"


def _key() -> str:
    return f"{cpu_model()} | {os.uname().release}"
