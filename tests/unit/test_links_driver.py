"""Choosing a driver, its state on disk, and the small parts of the relay that need no kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator import links
from emulator.core.errors import HostError, LinkError, UsageError
from emulator.core.lab_id import LabId
from emulator.core.plan import Impairment
from emulator.core.problem import Problem
from emulator.core.rng import light
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links import state
from emulator.links.base import Cable, CableEnd, LinkDriver
from emulator.links.fake import FakeDriver
from emulator.links.ping import checksum, echo_request
from emulator.links.relay import counters
from emulator.links.relay.driver import RelayDriver
from emulator.links.relay.lane import CATCH_UP, Lane, Setting
from emulator.links.relay.loop import Lateness

FIGURES = Impairment(Rate(1e6), Delay(0.1), Delay(0.01), Share(0.5), Size(3000), 7)


def cable(name: str) -> Cable:
    end = CableEnd("n", "/proc/1/ns/net", "eth0", "02:00:00:00:00:01")
    return Cable(name, end, end, FIGURES, Impairment(), 1400)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabId:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path))
    return LabId.of("state")


def test_an_unknown_driver_is_refused_with_the_known_names() -> None:
    with pytest.raises(UsageError, match="use one of netem, relay, fake"):
        links.driver("veth")


def test_a_forced_driver_is_taken_though_another_works() -> None:
    assert isinstance(links.choose("fake"), FakeDriver)


class Broken(FakeDriver):
    def probe(self) -> list[Problem]:
        return [Problem("it cannot", "mend it")]


def test_the_first_that_works_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    works = FakeDriver()
    found: dict[str, LinkDriver] = {"netem": Broken(), "relay": works}
    monkeypatch.setattr(links, "driver", found.__getitem__)
    assert links.choose() is works
    found["relay"] = Broken()
    with pytest.raises(HostError, match="relay: it cannot; mend it"):
        links.choose()


def test_cables_come_back_with_their_latest_change(lab: LabId) -> None:
    first, second = cable("one"), cable("two")
    state.write_cables(lab, "relay", [first, second])
    assert state.read_cables(lab, "relay") == [first, second]
    state.write_change(lab, "relay", "two", Impairment(), FIGURES)
    changed = state.read_cables(lab, "relay")
    assert changed[0] == first
    assert (changed[1].a_to_b, changed[1].b_to_a, changed[1].a) == (Impairment(), FIGURES, second.a)
    state.remove_state(lab, "relay")
    assert state.read_cables(lab, "relay") == []


def test_a_relay_that_is_not_there_is_dead_and_cannot_change(lab: LabId) -> None:
    driver = RelayDriver()
    assert not driver.health(lab).alive
    with pytest.raises(LinkError, match="emu link restart state"):
        driver.change(lab, "x", FIGURES, FIGURES)
    with pytest.raises(LinkError, match="no relayed links"):
        driver.restart(lab)


def test_counters_outlive_their_writer(tmp_path: Path) -> None:
    def lanes() -> list[Lane]:
        return [Lane(0, 0, Setting(None, 0, 0, 0, 0, 0), 1500, light(0)) for _ in range(2)]

    assert counters.read(tmp_path) == []
    first = lanes()
    writer = counters.Counters(tmp_path, first)
    first[1].packets, first[1].unasked = 3, 2**40
    writer.write()
    assert counters.read(tmp_path) == [(0, 0, 0, 0, 0), (3, 0, 0, 0, 2**40)]
    second = lanes()
    counters.Counters(tmp_path, second)
    assert [lane.counters() for lane in second] == counters.read(tmp_path)


@pytest.mark.parametrize(
    ("rate", "queue", "most"),
    [(None, 0, 64), (1e9, 1e6, 96), (100e6, 1e6, 12), (25e6, 1e6, 3), (1.5e6, 1e6, 2), (100e6, 3000, 1), (1e6, 0, 1)],
)
def test_bursts_are_about_a_millisecond_of_line(rate: float | None, queue: float, most: int) -> None:
    assert Lane(0, 0, Setting(rate, 0, 0, 0, queue, 0), 1500, light(0)).most == most


def line(rate: float | None, target: int, frames: int, gap: float) -> Lane:
    """A lane of 1 ms delay that has taken a frame of 1,250 IP bytes every `gap` seconds from time 0 on."""
    lane = Lane(0, target, Setting(rate, 0.001, 0, 0, 1e9, 0), 1500, light(0))
    for number in range(frames):
        lane.accept(number * gap, bytes(24) + bytes(1250))
    return lane


def arrivals(lane: Lane, start: float, end: float, step: float = 0.0005) -> list[tuple[float, int]]:
    """(time, frames written) for looks every `step` from `start` to `end`."""
    seen = []
    for number in range(round((end - start) / step) + 1):
        before, at = lane.packets, start + number * step
        lane.deliver(at)
        if lane.packets > before:
            seen.append((at, lane.packets - before))
    return seen


def test_a_line_that_was_held_up_catches_up_on_little() -> None:
    """10 Mbit/s, a frame a millisecond without a gap; nobody looks for 50 ms."""
    lane = line(10e6, os.open(os.devnull, os.O_WRONLY), 200, 0.0001)
    seen = arrivals(lane, 0.060, 0.300)
    os.close(lane.target)
    assert seen[0] == (0.060, 1 + round(CATCH_UP * 1000))
    assert [count for _, count in seen[1:]] == [1] * (200 - seen[0][1])
    assert seen[-1][0] == pytest.approx(0.060 + 0.001 * (len(seen) - 1), abs=0.001)
    # What comes afterwards finds the line as late as that.
    lane.accept(0.2, bytes(24) + bytes(1250))
    assert lane.queue[0][0] == pytest.approx(seen[-1][0] + 0.001, abs=0.001)


def test_gaps_make_up_for_what_a_line_was_held_up() -> None:
    """A frame every 10 ms on the same line: those of a stall come together at its rate, the next are on time."""
    lane = line(10e6, os.open(os.devnull, os.O_WRONLY), 20, 0.010)
    seen = arrivals(lane, 0.060, 0.300)
    os.close(lane.target)
    assert seen[0] == (0.060, 1 + round(CATCH_UP * 1000))
    assert sum(count for at, count in seen if at < 0.070) == 6 + 1
    assert [at for at, _ in seen if at > 0.070] == pytest.approx([0.002 + 0.010 * n for n in range(7, 20)], abs=0.0006)


def test_a_line_without_a_rate_catches_up_at_once() -> None:
    lane = line(None, os.open(os.devnull, os.O_WRONLY), 100, 0.0001)
    seen = arrivals(lane, 0.060, 0.070)
    os.close(lane.target)
    assert seen == [(0.060, 100)]


def test_lateness_is_that_of_the_last_ten_seconds() -> None:
    lateness = Lateness()
    assert lateness.percentile(0.5) is None
    lateness.note(9.0)
    assert lateness.turn() == 9.0
    for _ in range(100):
        for sample in range(20):
            lateness.note(sample / 1000)
        lateness.turn()
    assert lateness.percentile(0.5) == pytest.approx(0.010)
    assert lateness.percentile(0.99) == pytest.approx(0.019)
    assert lateness.percentile(0.0) == 0.0


def test_an_echo_request_sums_to_nothing() -> None:
    assert checksum(echo_request(4660, 65_537)) == 0
