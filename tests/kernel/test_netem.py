"""What the conformance suite of link drivers cannot know: how the netem driver uses the kernel, and what it counts.

Timed tests assert that nothing comes too early, which no busy host can break, and bound lateness widely: in the VM
of `make test-kernel` a microsecond takes up to thirty.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import LinkError
from emulator.core.lab_id import LabId
from emulator.links import netem_hub, netem_line
from emulator.links.netem import NetemDriver
from tests.kernel.wire import cable, impairment, namespaces, receive, send, sockets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from emulator.core.plan import Impairment

pytestmark = [pytest.mark.kernel, pytest.mark.needs("root", "netns", "netem")]
LATE = 0.25


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabId:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    made = LabId.of("netem-test")
    made.directory.mkdir(parents=True)
    return made


@pytest.fixture
def plug(lab: LabId, tmp_path: Path) -> Iterator[Callable[..., list[Path]]]:
    """Plugs one cable between two new namespaces, and takes all of it away in the end."""
    with namespaces(tmp_path) as paths:
        driver = NetemDriver()

        def work(a_to_b: Impairment, b_to_a: Impairment | None = None) -> list[Path]:
            driver.plug(lab, [cable(paths, a_to_b, b_to_a or impairment())], lambda *_: None)
            return paths

        yield work
        driver.unplug(lab)


def tc(path: Path, *words: str) -> str:
    """What `tc` says in a namespace."""
    done = subprocess.run(["nsenter", f"--net={path}", "tc", *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_probe_finds_that_it_works() -> None:
    assert NetemDriver().probe() == []


def test_nodes_hold_no_queueing_discipline(plug: Callable[..., list[Path]]) -> None:
    for path in plug(impairment(20e6, delay=0.01)):
        shown = tc(path, "qdisc", "show", "dev", "eth0")
        assert "netem" not in shown
        assert "tbf" not in shown


def test_a_lone_packet_takes_its_time_on_the_line(plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(100e3, delay=0.05, over=100))) as (a, b):
        (sent,) = send(a, 1400)
        (frame,) = receive(b, 1, 5)
        wanted = 0.05 + (1400 + 100) * 8 / 100e3
        assert wanted <= frame.at - sent < wanted + LATE


def test_directions_are_apart(plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(delay=0.3), impairment(delay=0.05))) as (a, b):
        (there,) = send(a, 100)
        (frame,) = receive(b, 1, 5)
        (back,) = send(b, 100)
        (answer,) = receive(a, 1, 5)
        assert 0.3 <= frame.at - there < 0.3 + LATE
        assert 0.05 <= answer.at - back < 0.05 + LATE


def test_the_queue_is_bytes_beside_the_packet_on_the_line(lab: LabId, plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(50e3, delay=0.5, queue=6000))) as (a, b):
        send(a, 1500, 20)
        # One on the line and four that wait; half a second of flight holds none of the queue.
        frames = receive(b, 20, 3)
        counted = NetemDriver().statistics(lab)["link-0"].a_to_b
        assert [frame.number for frame in frames] == [0, 1, 2, 3, 4]
        assert (counted.packets, counted.bytes, counted.overflowed, counted.lost) == (5, 7500, 15, 0)
        gaps = [late.at - early.at for early, late in pairwise(frames)]
        assert sum(gaps) == pytest.approx(4 * 1500 * 8 / 50e3, abs=LATE)


def test_what_waits_leaves_at_the_rate(plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(1e6, delay=0.05, over=100))) as (a, b):
        send(a, 1400, 40)
        frames = receive(b, 40, 3)
        assert [frame.number for frame in frames] == list(range(40))
        wanted = 39 * 1500 * 8 / 1e6
        assert wanted - 0.005 <= frames[-1].at - frames[0].at < wanted + LATE


def test_a_sender_does_not_feel_the_queue(plug: Callable[..., list[Path]]) -> None:
    """What waits at the hub is not on the sender's account, or TCP would see the queue of a router far away."""
    with sockets(plug(impairment(50e3, queue=100_000))) as (a, b):
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        a.settimeout(2)
        start = time.monotonic()
        send(a, 1500, 50)
        assert time.monotonic() - start < 3  # on the line they take 12 s
        assert receive(b, 1, 3)


def test_super_packets_of_tcp_are_cut_up_before_the_hub(lab: LabId, plug: Callable[..., list[Path]]) -> None:
    for path in plug(impairment(100e6)):
        done = subprocess.run(
            ["nsenter", f"--net={path}", "ip", "-d", "link", "show", "eth0"], capture_output=True, text=True, check=True
        )
        assert "gso_max_segs 1 " in done.stdout


def test_jitter_keeps_order_and_spreads(plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(delay=0.1, jitter=0.08))) as (a, b):
        times = send(a, 100, 150, gap=0.02)
        frames = receive(b, 150, 2)
        assert [frame.number for frame in frames] == list(range(150))
        delays = sorted(frame.at - sent for frame, sent in zip(frames, times, strict=True))
        assert delays[0] >= 0.02
        assert delays[-15] - delays[15] > 0.05
        assert delays[75] < 0.1 + 0.08 + LATE


def test_what_is_lost_and_what_is_beyond_the_limit_are_counted_apart(
    lab: LabId, plug: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netem_line, "_MOST_PACKETS", 50)
    with sockets(plug(impairment(delay=1.0, loss=0.2))) as (a, b):
        send(a, 100, 400)
        frames = receive(b, 400, 3)
        counted = NetemDriver().statistics(lab)["link-0"].a_to_b
        assert len(frames) == counted.packets
        assert 50 <= counted.packets < 400  # the limit, and more where sending took longer than the delay
        assert 30 < counted.lost < 150
        assert counted.unasked > 0
        assert counted.packets + counted.lost + counted.overflowed + counted.unasked == 400


def test_change_is_whole_or_not_at_all_and_keeps_the_queue(lab: LabId, plug: Callable[..., list[Path]]) -> None:
    with sockets(plug(impairment(200e3, queue=100_000))) as (a, b):
        driver = NetemDriver()
        before = tc(lab.directory / "netem" / "hub", "qdisc")
        with pytest.raises(LinkError, match="the kernel did not take a setting as it was given \\(jitter 3000000000"):
            driver.change(lab, "link-0", impairment(1e6, delay=0.2), impairment(jitter=3))
        assert tc(lab.directory / "netem" / "hub", "qdisc") == before
        send(a, 1500, 30)
        driver.change(lab, "link-0", impairment(2e6, queue=100_000), impairment())
        frames = receive(b, 30, 2)
        assert len(frames) == 30
        assert frames[-1].at - frames[0].at < 1.5  # at the old rate it takes 1.8 s


def test_many_cables_have_names_of_their_own_and_one_change_touches_one(lab: LabId, tmp_path: Path) -> None:
    driver = NetemDriver()
    with namespaces(tmp_path) as paths:
        cables = [cable(paths, impairment(1e6 + number), impairment(), number) for number in range(30)]
        driver.plug(lab, cables, lambda *_: None)
        driver.change(lab, "link-7", impairment(5e6), impairment())
        assert list(driver.statistics(lab)) == [f"link-{number}" for number in range(30)]
        shown = tc(lab.directory / "netem" / "hub", "qdisc", "show", "dev", netem_hub.device(7, "x"))
        assert "rate 5Mbit" in shown
        assert driver.health(lab).alive
        driver.unplug(lab)


def test_a_refused_plug_leaves_nothing(lab: LabId, tmp_path: Path) -> None:
    with namespaces(tmp_path) as paths:
        good, bad = cable(paths, impairment(), impairment()), cable(paths, impairment(), impairment(), 1)
        clash = type(bad)(**{**bad.__dict__, "a": type(bad.a)(**{**bad.a.__dict__, "interface": "eth0"})})
        with pytest.raises(LinkError, match=r"eth0 of a \(link link-1\) was refused by the kernel \(File exists\)"):
            NetemDriver().plug(lab, [good, clash], lambda *_: None)
        assert "eth0" not in os.popen(f"nsenter --net={paths[0]} ip link").read()
        assert not (lab.directory / "netem").exists()
        assert NetemDriver().unplug(lab) == []


def test_a_hub_that_is_gone_is_told_and_cleaned(lab: LabId, plug: Callable[..., list[Path]]) -> None:
    plug(impairment())
    driver = NetemDriver()
    hub = lab.directory / "netem" / "hub"
    subprocess.run(["umount", hub], check=True)
    assert "the hub namespace is gone" in driver.health(lab).detail
    with pytest.raises(LinkError, match="cannot be restarted"):
        driver.restart(lab)
    with pytest.raises(LinkError, match="cannot be made or entered"):
        driver.statistics(lab)
    assert driver.unplug(lab) == ["cable link-0"]
