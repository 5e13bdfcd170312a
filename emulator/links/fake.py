"""Cables without a kernel: the contract of a link driver in memory, on a clock that only tests move.

`Direction` (the arithmetic, from `model`) is also what the simulator times messages with.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.core.rng import light
from emulator.links.base import CableStatistics, DirectionStatistics, DriverHealth
from emulator.links.lacking import check
from emulator.links.model import Direction, Rescale, Transfer
from emulator.links.state import read_cables, remove_state, write_cables, write_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.lab_id import LabId
    from emulator.core.plan import Impairment
    from emulator.core.problem import Problem
    from emulator.links.base import Cable, Journal

#: what only a kernel's queueing disciplines do
LACKING = ("codel",)

__all__ = ["Direction", "FakeDriver", "Transfer"]


@dataclass
class Packet:
    """A packet on its way: `finish` is when it has left the line, `arrival` when it is there."""

    payload: bytes
    nbytes: int
    finish: float
    arrival: float
    corrupted: bool = False


@dataclass
class Lane:
    """One direction with the packets in it and its counters."""

    direction: Direction
    packets: list[Packet] = field(default_factory=list)
    counted: DirectionStatistics = field(default_factory=DirectionStatistics)

    def send(self, now: float, payload: bytes, nbytes: int) -> None:
        """Hand in one packet of `nbytes` IP bytes."""
        for _ in range(1 + self.direction.is_duplicated()):
            self._send(now, payload, nbytes)

    def _send(self, now: float, payload: bytes, nbytes: int) -> None:
        finish = self.direction.enqueue(now, nbytes + self.direction.overhead)
        if finish is None:
            self.counted = replace(self.counted, overflowed=self.counted.overflowed + 1)
        elif self.direction.survivors(1) == 0:
            self.counted = replace(self.counted, lost=self.counted.lost + 1)
        else:
            arrival, corrupted = self.direction.arrival(finish), self.direction.is_corrupted()
            insort(self.packets, Packet(payload, nbytes, finish, arrival, corrupted), key=_arrival)

    def deliver(self, now: float) -> list[tuple[float, bytes]]:
        """Take out what has arrived by `now` with its time; a receiver's checksum tells what is damaged."""
        arrived = [packet for packet in self.packets if packet.arrival <= now]
        self.packets = self.packets[len(arrived) :]
        self.counted = replace(
            self.counted,
            packets=self.counted.packets + len(arrived),
            bytes=self.counted.bytes + sum(packet.nbytes for packet in arrived),
        )
        return [(packet.arrival, packet.payload) for packet in arrived if not packet.corrupted]

    def change(self, now: float, impairment: Impairment) -> None:
        """Set another impairment, keeping the packets."""
        apply_rescale(self.direction, self.direction.change(now, impairment), self.packets)
        self.packets.sort(key=_arrival)


_arrival = attrgetter("arrival")


def apply_rescale(direction: Direction, move: Rescale, packets: Sequence[Packet]) -> None:
    """Move the packets of a direction as its change asks."""
    last = float("-inf")
    for packet in packets:
        packet.arrival = move.arrival(packet.finish, packet.arrival, float("-inf") if direction.overtaking else last)
        packet.finish, last = move.finish(packet.finish), max(last, packet.arrival)
    direction.last = last


class FakeDriver:
    """A LinkDriver in memory. `now` is set by the test; another process sees the cables, but no traffic."""

    name = "fake"

    def __init__(self) -> None:
        self.now = 0.0
        self._lanes: dict[tuple[str, str], tuple[Lane, Lane]] = {}

    def probe(self) -> list[Problem]:
        return []

    def plug(self, lab: LabId, cables: Sequence[Cable], journal: Journal) -> None:
        for cable in cables:
            check(cable.name, self.name, LACKING, cable.a_to_b, cable.b_to_a)
        journal("links", self.name)
        write_cables(lab, self.name, cables)
        self._load(lab, cables)

    def _load(self, lab: LabId, cables: Sequence[Cable]) -> None:
        for cable in cables:
            self._lanes[lab.name, cable.name] = (
                Lane(Direction(cable.a_to_b, light(cable.seed, lab.name, cable.name, "a"), cable.mtu)),
                Lane(Direction(cable.b_to_a, light(cable.seed, lab.name, cable.name, "b"), cable.mtu)),
            )

    def lanes(self, lab: LabId, cable: str) -> tuple[Lane, Lane]:
        """Both directions (a to b, b to a) of a cable; raises LinkError for one that is not plugged in."""
        if (lab.name, cable) not in self._lanes:
            self._load(lab, read_cables(lab, self.name))
        try:
            return self._lanes[lab.name, cable]
        except KeyError:
            raise LinkError(
                f"lab {lab.name} has no link {cable!r}", fix="see its links with `emu topology show`"
            ) from None

    def change(self, lab: LabId, cable: str, a_to_b: Impairment, b_to_a: Impairment) -> None:
        check(cable, self.name, LACKING, a_to_b, b_to_a)
        for lane, impairment in zip(self.lanes(lab, cable), (a_to_b, b_to_a), strict=True):
            lane.change(self.now, impairment)
        write_change(lab, self.name, cable, a_to_b, b_to_a)

    def statistics(self, lab: LabId) -> Mapping[str, CableStatistics]:
        counted = {}
        for cable in read_cables(lab, self.name):
            a, b = self.lanes(lab, cable.name)
            counted[cable.name] = CableStatistics(a.counted, b.counted)
        return counted

    def health(self, lab: LabId) -> DriverHealth:
        plugged = bool(read_cables(lab, self.name))
        return DriverHealth(plugged, detail="a model, no packets" if plugged else "no cable is plugged in")

    def restart(self, lab: LabId) -> None:
        """Nothing to bring back: no process carries these cables."""

    def unplug(self, lab: LabId) -> list[str]:
        removed = [f"cable {cable.name}" for cable in read_cables(lab, self.name)]
        self._lanes = {key: lanes for key, lanes in self._lanes.items() if key[0] != lab.name}
        remove_state(lab, self.name)
        return removed
