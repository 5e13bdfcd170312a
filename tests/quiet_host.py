"""Readings of a made-up host on which nothing goes wrong but what a test says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emulator.lab.load import Load

QUIET = Load(at=100.0, wall=5000.0, boot=100.0, cores=2, total=1000.0, steal=1.0, available=0.8, stalled=3.0)


def later(load: Load = QUIET, seconds: float = 5.0, **changes: Any) -> Load:
    """The same host some seconds on, with nothing gone wrong but what is said."""
    fine = {"at": load.at + seconds, "wall": load.wall + seconds, "boot": load.boot + seconds}
    return replace(load, **{**fine, "total": load.total + 2 * seconds, **changes})
