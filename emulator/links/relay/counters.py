"""Counters of all cables in a mapped file, so that they outlive the relay and are read without asking it.

`<lab>/relay/counters`: for each cable in plugging order, a to b and then b to a: packets, bytes, lost, overflowed,
unasked, 64 bits each. Written a few times a second and whenever a reader asks; a killed relay loses what is younger.
"""

from __future__ import annotations

import mmap
import os
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.links.relay.lane import Lane

FIELDS = 5
FILE = "counters"


class Counters:
    """The file, written by the relay."""

    def __init__(self, directory: Path, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        size = max(1, len(lanes)) * FIELDS * 8
        descriptor = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, size)
        self._map = mmap.mmap(descriptor, size)
        os.close(descriptor)
        values = array("Q", self._map[:])
        for index, lane in enumerate(lanes):
            lane.packets, lane.bytes, lane.lost, lane.overflowed, lane.unasked = values[
                index * FIELDS : (index + 1) * FIELDS
            ]

    def write(self) -> None:
        """Bring the file up to date."""
        values = array("Q")
        for lane in self._lanes:
            values.extend(lane.counters())
        self._map[: len(values) * 8] = values.tobytes()


def read(directory: Path) -> list[tuple[int, ...]]:
    """The counters of every direction, in order; none where there is no file."""
    try:
        values = array("Q", (directory / FILE).read_bytes())
    except FileNotFoundError:
        return []
    return [tuple(values[start : start + FIELDS]) for start in range(0, len(values), FIELDS)]
