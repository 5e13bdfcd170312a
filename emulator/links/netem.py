"""Cables by the kernel's own shaping (`sch_netem` and `sch_tbf`), in a hub namespace of the lab.

The hub is held by a mount at `<lab>/netem/hub`; the cables' names and settings lie beside it. No process of ours
carries packets, so there is none to die or to restart.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.core.rng import seed_of
from emulator.links import netem_count, netem_line, netem_order
from emulator.links import netem_hub as hub_of
from emulator.links.base import DriverHealth
from emulator.links.lacking import check
from emulator.links.netem_netlink import Netlink, NetlinkError
from emulator.links.netem_probe import probe
from emulator.links.netns import travelling
from emulator.links.network import ipv6_off
from emulator.links.state import directory, read_cables, remove_state, write_cables, write_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from emulator.core.lab_id import LabId
    from emulator.core.plan import Impairment
    from emulator.core.problem import Problem
    from emulator.links.base import Cable, CableStatistics, Journal
    from emulator.links.netem_line import Line

#: what the kernel takes a setting for, and does not do: it picks a deviation by the low bits of a correlated number
LACKING = ("correlation",)
_RUNNING = 0x10001  # IFF_UP and IFF_LOWER_UP


class NetemDriver:
    """A LinkDriver for kernels that have `sch_netem`."""

    name = "netem"

    def probe(self) -> list[Problem]:
        return probe()

    def plug(self, lab: LabId, cables: Sequence[Cable], journal: Journal) -> None:
        if _hub(lab).exists():
            raise LinkError(
                f"the cables of lab {lab.name} are plugged in already", fix=f"take them out with `emu down {lab.name}`"
            )
        settings = [_lines(cable, cable.a_to_b, cable.b_to_a) for cable in cables]
        journal("links", self.name)
        write_cables(lab, self.name, cables)
        journal("netns", str(_hub(lab)))
        try:
            with _explained(lab):
                _quiet(cables)
                hub_of.create(_hub(lab))
                with hub_of.connect(_hub(lab)) as hub:
                    _plug(hub, cables, settings)
                lines = [[hub_of.device(index, part) for part in "xy"] for index in range(len(cables))]
                hub_of.in_thread(lambda: netem_order.steer(_hub(lab), lines))
        except BaseException:
            self.unplug(lab)
            raise

    def change(self, lab: LabId, cable: str, a_to_b: Impairment, b_to_a: Impairment) -> None:
        cables = read_cables(lab, self.name)
        index = next((index for index, known in enumerate(cables) if known.name == cable), None)
        if index is None:
            raise LinkError(f"lab {lab.name} has no link {cable!r}", fix="see its links with `emu topology show`")
        was = cables[index]
        wanted, before = _lines(was, a_to_b, b_to_a), _lines(was, was.a_to_b, was.b_to_a)
        with _explained(lab), hub_of.connect(_hub(lab)) as hub:
            numbers = hub_of.indices(hub)
            try:
                hub.send(hub_of.shape(index, numbers, wanted, cable, before))
                _check(cable, wanted, _decode(netem_count.qdiscs(hub), index, numbers))
            except (NetlinkError, LinkError):
                hub.send(hub_of.shape(index, numbers, before, cable, wanted))
                raise
        write_change(lab, self.name, cable, a_to_b, b_to_a)

    def statistics(self, lab: LabId) -> Mapping[str, CableStatistics]:
        names = [cable.name for cable in read_cables(lab, self.name)]
        if not names:
            return {}
        with _explained(lab), hub_of.connect(_hub(lab)) as hub:
            return netem_count.read(hub, names)

    def health(self, lab: LabId) -> DriverHealth:
        cables = read_cables(lab, self.name)
        if not cables:
            return DriverHealth(False, "kernel", detail="no cable is plugged in")
        try:
            with hub_of.connect(_hub(lab)) as hub:
                found = hub_of.links(hub)
        except OSError as error:
            return DriverHealth(False, "kernel", detail=f"the hub namespace is gone ({error.strerror})")
        dead = [
            cable.name
            for index, cable in enumerate(cables)
            if not (cable.a.is_dead or cable.b.is_dead)  # what became of a node is its runtime's to tell
            and any(found.get(hub_of.device(index, part), (0, 0, 0))[1] & _RUNNING != _RUNNING for part in "abxy")
        ]
        detail = f"cut by a missing or downed interface: {', '.join(dead)}" if dead else ""
        return DriverHealth(not dead, "kernel", detail=detail)

    def restart(self, lab: LabId) -> None:
        """Nothing to bring back while the hub lives; raises LinkError when it does not."""
        health = self.health(lab)
        if not health.alive:
            raise LinkError(
                f"the links of lab {lab.name} cannot be restarted: {health.detail}",
                fix=f"take the lab down and up again (`emu down {lab.name}`)",
            )

    def unplug(self, lab: LabId) -> list[str]:
        removed = [f"cable {cable.name}" for cable in read_cables(lab, self.name)]
        with _explained(lab):
            if hub_of.destroy(_hub(lab)):
                removed.append(f"netns {_hub(lab)}")
        remove_state(lab, self.name)
        return removed


def _hub(lab: LabId) -> Path:
    return directory(lab, NetemDriver.name) / "hub"


def _lines(cable: Cable, a_to_b: Impairment, b_to_a: Impairment) -> tuple[Line, Line]:
    check(cable.name, NetemDriver.name, LACKING, a_to_b, b_to_a)
    there, back = (
        netem_line.line_of(way, cable.mtu, f"link {cable.name}", seed_of(cable.seed, cable.name, side, way))
        for side, way in (("a_to_b", a_to_b), ("b_to_a", b_to_a))
    )
    return there, back


def _quiet(cables: Sequence[Cable]) -> None:
    """Keep the ends in the nodes from speaking IPv6 by themselves as soon as they are up."""
    with travelling() as go:
        for path in {end.netns for cable in cables for end in (cable.a, cable.b)}:
            go(path)
            ipv6_off("default")


def _plug(hub: Netlink, cables: Sequence[Cable], lines: Sequence[tuple[Line, Line]]) -> None:
    namespaces: dict[str, int] = {}
    try:
        for path in dict.fromkeys(end.netns for cable in cables for end in (cable.a, cable.b)):
            namespaces[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        hub.send([m for index, cable in enumerate(cables) for m in hub_of.plug(index, cable, namespaces)])
    finally:
        for descriptor in namespaces.values():
            os.close(descriptor)
    numbers = hub_of.indices(hub)
    messages = []
    for index, (cable, pair) in enumerate(zip(cables, lines, strict=True)):
        # Shaped before it is up: the kernel waits for its readers when it replaces the qdisc of a device in use.
        messages += hub_of.shape(index, numbers, pair, cable.name)
        messages += hub_of.join(index, numbers, cable.name)
    hub.send(messages)
    disciplines = netem_count.qdiscs(hub)
    for index, (cable, wanted) in enumerate(zip(cables, lines, strict=True)):
        _check(cable.name, wanted, _decode(disciplines, index, numbers))


def _decode(disciplines: netem_count.Disciplines, index: int, numbers: Mapping[str, int]) -> tuple[Line, Line]:
    def line(part: str, port: str) -> Line:
        number, out = numbers[hub_of.device(index, part)], numbers[hub_of.device(index, port)]
        return netem_line.read(
            netem_line.Answers(
                disciplines[number, netem_count.ROOT],
                disciplines[number, netem_count.CHILD],
                disciplines.get((number, netem_count.GRANDCHILD)),
                disciplines[out, netem_count.ROOT],
                disciplines.get((out, netem_count.CHILD)),
            )
        )

    return line("x", "b"), line("y", "a")


def _check(cable: str, wanted: tuple[Line, Line], got: tuple[Line, Line]) -> None:
    for asked, taken in zip(wanted, got, strict=True):
        names = netem_line.refused(asked, taken)
        if names:
            shown = ", ".join(f"{name} {getattr(asked, name)} became {getattr(taken, name)}" for name in names)
            raise LinkError(
                f"the kernel did not take a setting as it was given ({shown})",
                where=f"link {cable}",
                fix="use a smaller value, or --link-driver relay",
            )


@contextmanager
def _explained(lab: LabId) -> Iterator[None]:
    """Turn the kernel's refusals into sentences."""
    try:
        yield
    except NetlinkError as error:
        fix = "see `emu doctor`, or use --link-driver relay"
        if error.errno == errno.EEXIST:
            fix = "choose another interface name or MAC; that one is taken in the node"
        raise LinkError(
            f"{error.label} was refused by the kernel ({error.strerror})", where="netem", fix=fix
        ) from error
    except OSError as error:
        raise LinkError(
            f"the hub namespace of lab {lab.name} cannot be made or entered ({error.strerror or error})",
            where=str(error.filename or _hub(lab)),
            fix=f"run as root, or take the lab down (`emu down {lab.name}`) and up again",
        ) from error
