"""The relay as a link driver: makes the TAPs, starts the process that moves packets, and asks it."""

from __future__ import annotations

import os
import resource
import shutil
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import EmuError, LinkError
from emulator.core.linux import CLONE_NEWNET, unshare
from emulator.core.marks import control_group
from emulator.core.problem import Problem
from emulator.core.units import Delay
from emulator.links import state
from emulator.links.base import CableStatistics, DirectionStatistics, DriverHealth
from emulator.links.lacking import check
from emulator.links.netns import travelling
from emulator.links.relay import control, counters, process, tap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.lab_id import LabId
    from emulator.core.plan import Impairment
    from emulator.links.base import Cable, Journal

#: what only a kernel's queueing disciplines do
LACKING = ("codel",)


class RelayDriver:
    """Cables moved by a process of ours, for kernels without `sch_netem`."""

    name = "relay"

    def probe(self) -> list[Problem]:
        if os.geteuid() != 0:
            return [Problem("making network interfaces needs root", "run with sudo")]
        if not Path(tap.DEVICE).exists():
            fix = "load the tun module (modprobe tun) or give the container the device"
            return [Problem(f"{tap.DEVICE} is missing", fix)]
        return _try_tap()

    def plug(self, lab: LabId, cables: Sequence[Cable], journal: Journal) -> None:
        for cable in cables:
            check(cable.name, self.name, LACKING, cable.a_to_b, cable.b_to_a)
        journal("links", str(state.directory(lab, self.name)))
        self._forget(lab)
        state.write_cables(lab, self.name, cables)
        try:
            starting = process.Starting(lab)
            try:
                taps = _make_taps(cables)
            except BaseException:
                starting.close()
                raise
            _hand_over(starting, taps)
        except BaseException:
            self.unplug(lab)
            raise

    def change(self, lab: LabId, cable: str, a_to_b: Impairment, b_to_a: Impairment) -> None:
        check(cable, self.name, LACKING, a_to_b, b_to_a)
        request = {"do": "change", "name": cable, "a_to_b": asdict(a_to_b), "b_to_a": asdict(b_to_a)}
        error = self._ask(lab, request).get("error")
        if error == "unknown":
            raise LinkError(f"lab {lab.name} has no link {cable!r}", fix="see its links with `emu topology show`")
        if error:
            raise LinkError(
                f"the change of {cable!r} cannot be kept ({error})", where=str(lab.directory), fix="free space"
            )

    def _ask(self, lab: LabId, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return control.ask(state.directory(lab, self.name), request)
        except OSError as error:
            raise LinkError(
                f"the relay of lab {lab.name} does not answer ({error.strerror or error})",
                fix=f"bring it back with `emu link restart {lab.name}`",
            ) from None

    def statistics(self, lab: LabId) -> Mapping[str, CableStatistics]:
        try:
            self._ask(lab, {"do": "sync"})
        except LinkError:  # a dead relay's last counters are still there
            pass
        cables = state.read_cables(lab, self.name)
        counted = counters.read(state.directory(lab, self.name))
        counted += [(0,) * counters.FIELDS] * (2 * len(cables) - len(counted))
        dropped = _dropped_by_kernel(cables)
        return {
            cable.name: CableStatistics(
                _statistics(counted[2 * index], dropped.get((cable.a.netns, cable.a.interface), 0)),
                _statistics(counted[2 * index + 1], dropped.get((cable.b.netns, cable.b.interface), 0)),
            )
            for index, cable in enumerate(cables)
        }

    def health(self, lab: LabId) -> DriverHealth:
        try:
            told = control.ask(state.directory(lab, self.name), {"do": "health"})
        except OSError as error:
            left = process.running(lab)
            what = (
                f"does not answer, see {state.directory(lab, self.name) / 'log'}"
                if left
                else "and its supervisor are dead"
            )
            return DriverHealth(False, detail=f"the relay {what} ({error.strerror or error})")
        notes = [f"{name}: {trouble}" for name, trouble in told["trouble"].items()]
        notes += [f"{node}: its network namespace is gone" for node in _gone(state.read_cables(lab, self.name))]
        if told["supervisor"] not in process.running(lab):
            notes.append("the relay's supervisor is dead")
        return DriverHealth(
            alive=True,
            priority=told["priority"],
            lateness_p50=_delay(told["lateness_p50"]),
            lateness_p99=_delay(told["lateness_p99"]),
            restarts=told["restarts"],
            detail="; ".join(notes),
            pid=told["pid"],
        )

    def restart(self, lab: LabId) -> None:
        """End what is left of the relay and start it anew on the same TAPs. Raises LinkError without state."""
        cables = state.read_cables(lab, self.name)
        if not cables:
            raise LinkError(f"lab {lab.name} has no relayed links", fix="start the lab with `emu up`")
        process.end(lab)
        starting = process.Starting(lab)
        try:
            taps = _attach_taps(cables)
        except BaseException:
            starting.close()
            raise
        _hand_over(starting, taps)

    def unplug(self, lab: LabId) -> list[str]:
        removed = [f"process {pid}" for pid in process.end(lab)]
        removed += _remove_taps(state.read_cables(lab, self.name))
        self._forget(lab)
        _leave_group(lab)
        return removed

    def _forget(self, lab: LabId) -> None:
        shutil.rmtree(state.directory(lab, self.name), ignore_errors=True)


def _delay(seconds: float | None) -> Delay | None:
    return None if seconds is None else Delay(seconds)


def _statistics(counted: tuple[int, ...], dropped: int) -> DirectionStatistics:
    packets, nbytes, lost, overflowed, unasked = counted
    return DirectionStatistics(packets, nbytes, lost, overflowed, unasked + dropped)


def _try_tap() -> list[Problem]:
    """Make a TAP in a namespace of a thread's own, which takes it along when the thread ends."""
    problems: list[Problem] = []

    def attempt() -> None:
        try:
            unshare(CLONE_NEWNET)
            os.close(tap.attach("probe"))
        except OSError as error:
            fact = f"a TAP device cannot be made ({error.strerror})"
            problems.append(Problem(fact, f"run with CAP_NET_ADMIN and {tap.DEVICE}"))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return problems


def _raise_limit(descriptors: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < descriptors + 256:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _make_taps(cables: Sequence[Cable]) -> list[int]:
    """Both ends of all cables, new; raises LinkError, and closes what it opened."""
    return _taps(cables, fresh=True)


def _attach_taps(cables: Sequence[Cable]) -> list[int]:
    """Both ends of all cables as they are; raises LinkError for one that is gone, if it is no dead node's."""
    return _taps(cables, fresh=False)


def _taps(cables: Sequence[Cable], *, fresh: bool) -> list[int]:
    _raise_limit(2 * len(cables))
    ends = sorted(
        (
            (end, cable.mtu, 2 * index + side)
            for index, cable in enumerate(cables)
            for side, end in ((0, cable.a), (1, cable.b))
        ),
        key=lambda item: item[0].netns,
    )
    taps: dict[int, int] = {}
    try:
        with travelling() as go:
            for end, mtu, place in ends:
                try:
                    go(end.netns)
                    taps[place] = tap.make(end, mtu) if fresh else tap.take_up(end)
                except EmuError:
                    if fresh or not end.is_dead:
                        raise
                    taps[place] = tap.stand_in()  # the node has died, and its namespace with it
                except OSError as error:
                    raise LinkError(
                        f"the interface {end.interface} cannot be made ({error.strerror})",
                        where=f"node {end.node}",
                        fix="see `emu doctor`, and take what is left down with `emu down --all`",
                    ) from None
    except BaseException:
        _close_all(list(taps.values()))
        raise
    return [taps[place] for place in range(len(taps))]


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _hand_over(starting: process.Starting, taps: Sequence[int]) -> None:
    try:
        starting.hand_over(taps)
    finally:
        _close_all(taps)


def _remove_taps(cables: Sequence[Cable]) -> list[str]:
    """Remove the ends that are still there; a namespace that has gone took its own along."""
    removed, doomed = [], []
    with travelling() as go:
        for end in sorted((end for cable in cables for end in (cable.a, cable.b)), key=lambda end: end.netns):
            try:
                go(end.netns)
                descriptor = tap.doom(end.interface)
            except (EmuError, OSError):
                continue
            if descriptor is not None:
                doomed.append(descriptor)
                removed.append(f"interface {end.interface} of {end.node}")
    if doomed:
        process.in_threads(os.close, doomed)
    return removed


def _gone(cables: Sequence[Cable]) -> list[str]:
    """Nodes whose namespaces are gone, but for dead ones: what became of those is their runtime's to tell."""
    nodes = {end.node: end.netns for cable in cables for end in (cable.a, cable.b) if not end.is_dead}
    return [node for node, netns in nodes.items() if not Path(netns).exists()]


def _dropped_by_kernel(cables: Sequence[Cable]) -> dict[tuple[str, str], int]:
    """Packets that a TAP's own ring had no room for, by namespace and interface: nobody asked for these."""
    dropped = {}
    with travelling() as go:
        for netns in {end.netns for cable in cables for end in (cable.a, cable.b)}:
            try:
                go(netns)
            except EmuError:
                continue
            with open("/proc/thread-self/net/dev") as file:
                for line in list(file)[2:]:
                    name, _, fields = line.partition(":")
                    dropped[netns, name.strip()] = int(fields.split()[11])  # transmit drop
    return dropped


def _leave_group(lab: LabId) -> None:
    """Remove the control group if nobody else of the lab is in it."""
    try:
        group = control_group(lab)
        group.rmdir()
        group.parent.rmdir()
    except (EmuError, OSError):
        return
