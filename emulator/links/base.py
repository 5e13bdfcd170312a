"""What a link driver is: delay, limit and lose packets on point-to-point cables between network namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from emulator.core.units import Delay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.lab_id import LabId
    from emulator.core.plan import Impairment
    from emulator.core.problem import Problem


class Journal(Protocol):
    """Writes down, durably, what is about to be made."""

    def __call__(self, kind: str, name: str, /) -> None: ...


@dataclass(frozen=True)
class CableEnd:
    """Where a cable is plugged in: an interface to be made in a namespace (a path to setns to).

    `pid` is the node's first process (0 = it has none): once it has ended the cable carries nothing, whatever is left
    of the namespace, as a board without power is silent.
    """

    node: str
    netns: str
    interface: str
    mac: str
    pid: int = 0

    @property
    def is_dead(self) -> bool:
        """Whether the node has ended, as far as its pid tells."""
        return self.pid > 0 and not Path(f"/proc/{self.pid}").exists()


@dataclass(frozen=True)
class Cable:
    """A cable to make. Impairments are *real* (already scaled): what the kernel must do now.

    `seed` feeds what happens by chance on it.
    """

    name: str
    a: CableEnd
    b: CableEnd
    a_to_b: Impairment
    b_to_a: Impairment
    mtu: int = 1500
    seed: int = 0


@dataclass(frozen=True)
class DirectionStatistics:
    """One direction, counted since the cable was plugged in.

    `bytes` are IP bytes delivered; `lost` were dropped by the set loss, `overflowed` by the full queue,
    `unasked` by anything nobody asked for (kernel or driver limits). What goes to a node that has died, or still
    comes from what is left of it, is not counted.
    """

    packets: int = 0
    bytes: int = 0
    lost: int = 0
    overflowed: int = 0
    unasked: int = 0


@dataclass(frozen=True)
class CableStatistics:
    a_to_b: DirectionStatistics = field(default_factory=DirectionStatistics)
    b_to_a: DirectionStatistics = field(default_factory=DirectionStatistics)


@dataclass(frozen=True)
class DriverHealth:
    """Whether the driver's moving parts live, and how late they deliver.

    `lateness_p50` and `lateness_p99` are real seconds behind the set delivery time (None where the kernel does
    it and tells nothing); `priority` names the scheduling class in use; `restarts` counts the supervisor's; `pid` is
    the process that moves the packets, if one does.
    """

    alive: bool
    priority: str = ""
    lateness_p50: Delay | None = None
    lateness_p99: Delay | None = None
    restarts: int = 0
    detail: str = ""
    pid: int | None = None


class LinkDriver(Protocol):
    """Plugs cables. All state it needs later lies in the lab's directory, so any process can go on with it."""

    name: str

    def probe(self) -> list[Problem]:
        """What keeps this driver from working here; empty = it works (tried)."""
        ...

    def plug(self, lab: LabId, cables: Sequence[Cable], journal: Journal) -> None:
        """Make the cables: interfaces of the asked names, MACs and MTU, up, at both ends. All or nothing."""
        ...

    def change(self, lab: LabId, cable: str, a_to_b: Impairment, b_to_a: Impairment) -> None:
        """Set all of a cable's impairments at once, keeping what is queued. Raises LinkError if it can't be done."""
        ...

    def statistics(self, lab: LabId) -> Mapping[str, CableStatistics]:
        """Counters of every cable, by cable name."""
        ...

    def health(self, lab: LabId) -> DriverHealth:
        """Whether the cables carry traffic now."""
        ...

    def restart(self, lab: LabId) -> None:
        """Bring a dead driver process back; interfaces, addresses and routes stay as they are."""
        ...

    def unplug(self, lab: LabId) -> list[str]:
        """Remove all cables by our marks alone (idempotent); returns what was removed."""
        ...
