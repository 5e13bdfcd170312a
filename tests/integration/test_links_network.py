"""Links in a network: routers, switches, super-packets, many cables, and a relay that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.plan import Impairment, NodeKind
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links import driver
from emulator.links.ping import ping, ping_all
from emulator.links.relay import process
from tests.conformance.bare_lab import BareLab, Flow, star, tcp_flow, unique

pytestmark = pytest.mark.needs("root", "netns", "tun")
FAST = Impairment(rate=Rate(1e9), delay=Delay(0.0001), queue=Size(1e6))


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path))


def link(mbit: float, ms: float, queue: int = 200_000, loss: float = 0.0) -> Impairment:
    return Impairment(rate=Rate(mbit * 1e6), delay=Delay(ms / 1e3), queue=Size(queue), loss=Share(loss))


@pytest.mark.parametrize("kind", ["router", "switch"])
def test_a_flow_from_a_fast_link_fills_a_slow_one(kind: NodeKind) -> None:
    """Super-packets of the fast link are cut for the slow one, and its rate holds in every second."""
    flow = best_flow([(FAST, FAST), (link(20, 5), link(20, 5))], kind, 20e6)
    assert flow.rate(skip=1.0) >= 0.92 * 20e6
    assert flow.busiest_second() <= 1.01 * 20e6 + 8 * 1500
    assert flow.largest <= 2


def best_flow(spokes: list[tuple[Impairment, Impairment]], kind: NodeKind, rate: float) -> Flow:
    """A flow from h0 to h1. The promise is an idle host's, so one that breaks it is tried up to three times."""
    for _ in range(3):
        lab = BareLab(star(unique("net"), spokes, kind), driver("relay"))
        try:
            flow = tcp_flow(lab, "h0", "h1", 4.0)
        finally:
            lab.close()
        if flow.busiest_second() <= 1.01 * rate + 8 * 1500 and flow.rate(skip=1.0) >= 0.92 * rate:
            break
    return flow


def test_a_fast_flow_stays_in_super_packets() -> None:
    flow = best_flow([(link(200, 5, 1_000_000), FAST), (FAST, FAST)], "router", 200e6)
    assert flow.largest > 2
    assert flow.busiest_second() <= 1.01 * 200e6 + 8 * 1500


def test_loss_in_a_bulk_flow_is_of_single_packets() -> None:
    lab = BareLab(star(unique("net"), [(link(50, 1, loss=0.01), FAST), (FAST, FAST)]), driver("relay"))
    try:
        tcp_flow(lab, "h0", "h1", 3.0)
        counted = lab.driver.statistics(lab.lab)["h0--core"].a_to_b
    finally:
        lab.close()
    total = counted.packets + counted.lost
    assert total > 2000
    assert counted.lost / total == pytest.approx(0.01, abs=4 * (0.01 * 0.99 / total) ** 0.5)


def test_what_a_router_passes_on_is_cut_again_and_none_of_it_is_refused() -> None:
    """Two packets of the first link lie in one piece when they are passed on; loss makes single packets of them."""
    lab = BareLab(star(unique("net"), [(link(20, 1), FAST), (FAST, link(40, 1, loss=0.002))]), driver("relay"))
    try:
        flow = tcp_flow(lab, "h0", "h1", 2.0)
        counted = lab.driver.statistics(lab.lab)["h1--core"].b_to_a
        assert lab.driver.health(lab.lab).detail == ""
    finally:
        lab.close()
    assert counted.unasked == 0
    assert counted.packets > 1000 and len(flow.frames) > 1000


def test_a_node_whose_first_process_has_ended_is_silent() -> None:
    """Its namespace lives on: the relay holds it by its TAPs."""
    first = subprocess.Popen(["sleep", "600"])
    lab = BareLab(star(unique("net"), [(link(50, 10), link(50, 10))] * 3), driver("relay"), {"h1": first.pid})
    try:
        assert None not in ping(lab.path("h0"), lab.address("h1"), 2, 0.01)
        first.kill()
        first.wait()
        assert until(lambda: ping(lab.path("h0"), lab.address("h1"), 1, timeout=0.2) == [None])
        assert ping(lab.path("h0"), lab.address("h1"), 3, 0.01, 0.5) == [None] * 3
        lab.driver.restart(lab.lab)
        assert ping(lab.path("h0"), lab.address("h1"), 3, 0.01, 0.5) == [None] * 3
        assert None not in ping(lab.path("h0"), lab.address("h2"), 3, 0.01)
        assert lab.driver.health(lab.lab).detail == ""
        assert all(not counted.a_to_b.unasked for counted in lab.driver.statistics(lab.lab).values())
    finally:
        first.kill()
        first.wait()
        lab.close()


@pytest.mark.parametrize("kind", ["router", "switch"])
def test_a_hundred_nodes_answer(kind: NodeKind) -> None:
    lan = Impairment(rate=Rate(1e9), delay=Delay(0.0001), queue=Size(1e6))
    started = time.monotonic()
    lab = BareLab(star(unique("net"), [(lan, lan)] * 100, kind), driver("relay"))
    try:
        made = time.monotonic() - started
        answers = ping_all([(lab.path("h0"), lab.address(f"h{index}")) for index in range(1, 100)])
        assert None not in answers
        assert all(not counted.a_to_b.unasked for counted in lab.driver.statistics(lab.lab).values())
        assert made < 5.0
    finally:
        lab.close()


@pytest.fixture
def pair() -> Iterator[BareLab]:
    lab = BareLab(star(unique("net"), [(link(50, 10), link(50, 10))] * 2), driver("relay"))
    yield lab
    lab.close()


def until(condition: object, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_killed_relay_is_back_with_its_counters(pair: BareLab) -> None:
    assert None not in ping(pair.path("h0"), pair.address("h1"), 10, 0.01)
    before = pair.driver.statistics(pair.lab)["h0--core"].a_to_b.packets
    assert before == 10
    _, relay = process.running(pair.lab)
    os.kill(relay, signal.SIGKILL)
    killed = time.monotonic()
    assert until(lambda: pair.driver.health(pair.lab).restarts == 1)
    assert time.monotonic() - killed < 2.0
    assert None not in ping(pair.path("h0"), pair.address("h1"), 10, 0.01)
    assert pair.driver.statistics(pair.lab)["h0--core"].a_to_b.packets == 20


def test_both_killed_are_told_and_brought_back(pair: BareLab) -> None:
    pair.driver.change(pair.lab, "h0--core", link(50, 30), link(50, 30))
    process.end(pair.lab)
    health = pair.driver.health(pair.lab)
    assert not health.alive
    assert "dead" in health.detail
    assert pair.driver.statistics(pair.lab)["h0--core"].a_to_b.unasked == 0
    pair.driver.restart(pair.lab)
    assert pair.driver.health(pair.lab).alive
    trips = [trip or 9 for trip in ping(pair.path("h0"), pair.address("h1"), 10, 0.01)]
    assert min(trips) >= 0.0795  # the change outlived the relay that made it


def test_a_dead_supervisor_is_told(pair: BareLab) -> None:
    supervisor, _ = process.running(pair.lab)
    os.kill(supervisor, signal.SIGKILL)
    assert until(lambda: "supervisor is dead" in pair.driver.health(pair.lab).detail)
    assert pair.driver.health(pair.lab).alive
    assert None not in ping(pair.path("h0"), pair.address("h1"), 3, 0.01)


def test_every_process_of_the_relay_carries_the_labs_mark(pair: BareLab) -> None:
    from emulator.core.marks import control_group

    pids = process.running(pair.lab)
    assert len(pids) == 2
    inside = {int(line) for line in (control_group(pair.lab) / "cgroup.procs").read_text().split()}
    assert inside == set(pids)
    for pid in pids:
        assert f"EMU_LAB={pair.lab.name}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def test_nothing_is_left_of_many_labs(tmp_path: Path) -> None:
    def ours() -> list[str]:
        lines = [(path, _read(path)) for path in Path("/proc").glob("[0-9]*/cmdline")]
        return [str(path) for path, line in lines if str(tmp_path).encode() in line]

    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        lab = BareLab(star(unique("net"), [(FAST, FAST)] * 3), driver("relay"))
        assert len(ours()) == 2
        lab.close()
        assert ours() == []
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not list(tmp_path.glob("labs/*/relay"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
