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

#: shares of one processor at which it is measured
SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)
#: no measurement of an undisturbed host came out lower; one that does is a disturbed one's
LEAST = 0.6


@dataclass(frozen=True)
class Curve:
    """Worth by share of a processor, in between by the share's logarithm. Without points all is worth 1."""

    points: tuple[tuple[float, float], ...] = ()

    def at(self, share: float) -> float:
        """What a second is worth at a share of one processor; 1 from a whole one on, the first point's below it."""
        points = [*self.points, (1.0, 1.0)]
        if share <= points[0][0]:
            return points[0][1]
        for (low, worth), (high, next_worth) in pairwise(points):
            if share <= high:
                part = math.log(share / low) / math.log(high / low)
                return worth + part * (next_worth - worth)
        return 1.0


def smooth(measured: Mapping[float, float]) -> Curve:
    """A curve through measurements: no worth over 1 or under `LEAST`, and none under that of a smaller share."""
    worth, points = LEAST, []
    for share, value in sorted(measured.items()):
        worth = min(1.0, max(worth, value))
        points.append((share, round(worth, 4)))
    return Curve(tuple(points))


@cache
def known() -> Curve:
    """The curve that was measured on this host, with this kernel; one without points where none was."""
    try:
        points = json.loads(_file().read_text())[_key()]
        return smooth({float(share): float(worth) for share, worth in points})
    except (OSError, ValueError, KeyError, TypeError):
        return Curve()


def keep(curve: Curve) -> None:
    """Keep a curve for `known`; where the cache cannot be written nothing is corrected, which is harmless."""
    path = _file()
    temporary = path.with_name(f".delivery-{os.getpid()}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps({_key(): curve.points}))
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
