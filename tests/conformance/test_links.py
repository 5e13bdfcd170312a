"""What a receiver must observe of a cable, whichever driver made it: one body over fake, relay and netem."""

from __future__ import annotations

import itertools
import math
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from link_worlds import (
    PLAIN,
    Arrival,
    KernelWorld,
    World,
    address,
    change,
    ends,
    interfaces,
    make_world,
    no_journal,
    statistics,
)

from emulator.core.errors import LinkError
from emulator.core.plan import Impairment
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links.base import Cable
from emulator.links.netns import inside

FAKE = pytest.param("fake")
RELAY = pytest.param("relay", marks=pytest.mark.needs("root", "netns", "tun"))
NETEM = pytest.param("netem", marks=pytest.mark.needs("root", "netns", "netem"))
_numbers = itertools.count()


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path))
    made = make_world(request.param, f"links-{os.getpid()}-{next(_numbers)}")
    yield made
    made.close()


every = pytest.mark.parametrize("world", [FAKE, RELAY, NETEM], indirect=True)
kernel = pytest.mark.parametrize("world", [RELAY, NETEM], indirect=True)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def paced(count: int, every_seconds: float, size: int = 200) -> list[tuple[float, int]]:
    return [(index * every_seconds, size) for index in range(count)]


def in_order(arrivals: list[Arrival]) -> bool:
    indices = [arrival.index for arrival in arrivals]
    return indices == sorted(indices)


@every
def test_delay_is_that_of_the_direction(world: World) -> None:
    world.plug(Impairment(delay=Delay(0.03)), Impairment(delay=Delay(0.012)))
    there = world.exchange(paced(40, 0.01))
    back = world.exchange(paced(40, 0.01), reverse=True)
    assert len(there) == len(back) == 40
    for arrivals, delay in ((there, 0.03), (back, 0.012)):
        assert min(arrival.delay for arrival in arrivals) >= delay - min(world.slack, 0.0003)
        assert median([arrival.delay for arrival in arrivals]) <= delay + world.slack


@every
def test_jitter_has_the_set_spread(world: World) -> None:
    """Sparse packets show the distribution itself: uniform, and all of it used."""
    world.plug(Impairment(delay=Delay(0.03), jitter=Delay(0.01)))
    delays = [arrival.delay for arrival in world.exchange(paced(100, 0.021))]
    assert 0.02 - min(world.slack, 0.0003) <= min(delays) < 0.023 + world.slack
    assert max(delays) > 0.037
    assert sorted(delays)[97] <= 0.04 + world.slack
    assert median(delays) == pytest.approx(0.03, abs=0.004 + world.slack)


@every
def test_jitter_keeps_order(world: World) -> None:
    world.plug(Impairment(delay=Delay(0.02), jitter=Delay(0.015)))
    arrivals = world.exchange(paced(500, 0.001))
    assert len(arrivals) == 500
    assert in_order(arrivals)


def binomial_interval(n: int, p: float, confidence: float) -> tuple[int, int]:
    """The counts between which `confidence` of all honest runs lie."""
    log_p, log_q = math.log(p), math.log1p(-p)
    tail, below = (1 - confidence) / 2, 0.0
    low = high = 0
    for k in range(n + 1):
        log_mass = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_p + (n - k) * log_q
        below += math.exp(log_mass)
        low = low if below > tail and low else (k if below > tail else 0)
        if below >= 1 - tail:
            high = k
            break
    return low, high


@every
def test_loss_is_of_the_set_share_and_counted(world: World) -> None:
    """One honest run in a hundred lies outside its 99 % interval, so the second of two runs may decide."""
    low, high = binomial_interval(5000, 0.01, 0.99)
    assert (low, high) == (33, 69)
    world.plug(Impairment(loss=Share(0.01)))
    lost = [5000 - len(world.exchange(paced(5000, 0.0002)))]
    if not low <= lost[0] <= high:
        lost.append(5000 - len(world.exchange(paced(5000, 0.0002))))
    assert low <= lost[-1] <= high
    counted = statistics(world).a_to_b
    assert counted.lost == sum(lost)
    assert counted.unasked == counted.overflowed == 0


def busiest_second(arrivals: list[Arrival]) -> float:
    """The most bits in any window of one second."""
    most = total = first = 0
    for arrival in arrivals:
        total += arrival.size
        while arrivals[first].received <= arrival.received - 1.0:
            total -= arrivals[first].size
            first += 1
        most = max(most, total)
    return most * 8.0


@every
def test_rate_holds_in_every_second(world: World) -> None:
    """The promise is an idle host's: one that stalls sender or driver for 10 ms gets up to three runs."""
    rate, runs = 4e6, []
    world.plug(Impairment(rate=Rate(rate), queue=Size(250_000)))
    while len(runs) < 3:
        arrivals = world.exchange(paced(1750, 0.002, 1500))  # 6 Mbit/s for 3.5 s
        sent = sum(arrival.size for arrival in arrivals[1:]) * 8
        share = sent / (arrivals[-1].received - arrivals[0].received) / rate
        runs.append((busiest_second(arrivals) - 1500 * 8) / rate)
        if runs[-1] <= 1.01 and share == pytest.approx(1.0, abs=0.01):
            return
    pytest.fail(f"busiest seconds {runs} of the rate, mean {share}")


@every
def test_overhead_takes_the_line_too(world: World) -> None:
    world.plug(Impairment(rate=Rate(1e6), queue=Size(1e6), overhead=400))
    arrivals = world.exchange([(0.0, 100)] * 100)
    assert len(arrivals) == 100
    assert arrivals[-1].received - arrivals[0].received == pytest.approx(99 * 500 * 8 / 1e6, abs=0.002 + world.slack)


@every
def test_queue_is_bounded_and_what_finds_no_room_is_counted(world: World) -> None:
    world.plug(Impairment(rate=Rate(1e6), delay=Delay(0.1), queue=Size(15_000)))
    arrivals = world.exchange([(0.0, 1500)] * 60)
    assert 10 <= len(arrivals) <= 12
    assert in_order(arrivals)
    counted = statistics(world).a_to_b
    assert counted.overflowed == 60 - len(arrivals)
    assert counted.lost == counted.unasked == 0


@every
def test_packets_in_flight_do_not_fill_the_queue(world: World) -> None:
    """200 ms of 2 Mbit/s are 50 kB in flight, past a queue of 6 kB."""
    world.plug(Impairment(rate=Rate(2e6), delay=Delay(0.2), queue=Size(6_000)))
    assert len(world.exchange(paced(100, 0.007, 1500))) == 100


@every
def test_a_change_keeps_what_waits(world: World) -> None:
    world.plug(Impairment(rate=Rate(1e6), delay=Delay(0.02), queue=Size(1e6)))
    faster = Impairment(rate=Rate(20e6), delay=Delay(0.02), queue=Size(1e6))
    arrivals = world.exchange([(0.0, 1250)] * 30, actions={0.1: lambda: change(world, faster)})
    assert len(arrivals) == 30
    assert in_order(arrivals)
    assert arrivals[-1].delay <= 0.32 + world.slack
    later = world.exchange([(0.0, 1250)] * 30)
    assert later[-1].delay <= 0.02 + 30 * 0.0005 + world.slack


@every
def test_a_change_is_atomic(world: World) -> None:
    """Each packet meets the old figures or the new ones, in both directions, and none is lost or overtaken."""
    slow, quick = Impairment(delay=Delay(0.08)), Impairment(delay=Delay(0.02))
    world.plug(quick, slow)
    arrivals = world.exchange(paced(150, 0.002), actions={0.15: lambda: change(world, slow, quick)})
    assert len(arrivals) == 150
    assert in_order(arrivals)
    middle = [arrival.delay for arrival in arrivals if 0.02 + 10 * world.slack < arrival.delay < 0.0795]
    assert len(middle) <= 1
    back = world.exchange(paced(20, 0.005), reverse=True)
    assert median([arrival.delay for arrival in back]) == pytest.approx(0.02, abs=world.slack + 1e-9)


@every
def test_a_change_of_what_is_not_there_is_refused(world: World) -> None:
    world.plug()
    with pytest.raises(LinkError, match="no link 'a--z'"):
        world.driver.change(world.lab, "a--z", PLAIN, PLAIN)


@every
def test_statistics_add_up(world: World) -> None:
    world.plug(Impairment(rate=Rate(2e6), loss=Share(0.1), queue=Size(20_000)), Impairment(loss=Share(0.2)))
    sizes = [(0.002 * (index // 10), 100 + 13 * (index % 100)) for index in range(500)]
    there = world.exchange(sizes)
    back = world.exchange(paced(100, 0.001), reverse=True)
    counted = statistics(world)
    for direction, sent, arrivals in ((counted.a_to_b, 500, there), (counted.b_to_a, 100, back)):
        assert direction.packets == len(arrivals)
        assert direction.bytes == sum(arrival.size for arrival in arrivals)
        assert direction.packets + direction.lost + direction.overflowed + direction.unasked == sent
    assert counted.a_to_b.overflowed > 0
    assert counted.a_to_b.lost > 0
    assert counted.b_to_a.overflowed == 0


@every
@pytest.mark.parametrize("mtu", [1500, 1280])
def test_a_full_packet_passes_unfragmented(world: World, mtu: int) -> None:
    world.plug(Impairment(rate=Rate(10e6), queue=Size(100_000)), mtu=mtu)
    assert [arrival.size for arrival in world.exchange([(0.0, mtu)] * 5)] == [mtu] * 5
    if isinstance(world, KernelWorld):
        with pytest.raises(OSError, match="Message too long"):
            world.exchange([(0.0, mtu + 1)])


@every
def test_unplug_takes_all_and_can_be_repeated(world: World) -> None:
    world.plug()
    assert world.driver.health(world.lab).alive
    assert world.driver.unplug(world.lab)
    assert world.driver.unplug(world.lab) == []
    assert not world.driver.health(world.lab).alive
    assert world.driver.statistics(world.lab) == {}
    if isinstance(world, KernelWorld):
        assert [interfaces(path) for path in world.paths] == [["lo"], ["lo"]]


@every
def test_two_labs_do_not_see_each_other(world: World) -> None:
    kind = world.driver.name
    other = make_world(kind, f"{world.lab.name}-too")
    try:
        world.plug(Impairment(delay=Delay(0.01)))
        other.plug(Impairment(delay=Delay(0.05)))
        assert median([arrival.delay for arrival in world.exchange(paced(20, 0.002))]) < 0.02 + world.slack
        other.driver.unplug(other.lab)
        assert len(world.exchange(paced(20, 0.002))) == 20
        assert statistics(world).a_to_b.packets == 40
    finally:
        other.close()


@kernel
def test_plugging_is_all_or_nothing(world: KernelWorld) -> None:
    good, bad = ends([world.paths[0], "/proc/1/ns/none"]), ends([world.paths[0], world.paths[1]])
    cables = [Cable("whole", *bad, PLAIN, PLAIN), Cable("broken", *good, PLAIN, PLAIN)]
    with pytest.raises(LinkError):
        world.driver.plug(world.lab, cables, no_journal)
    assert [interfaces(path) for path in world.paths] == [["lo"], ["lo"]]
    assert not world.driver.health(world.lab).alive


@kernel
def test_connections_outlive_a_restart_of_the_driver(world: KernelWorld) -> None:
    world.plug(Impairment(rate=Rate(50e6), delay=Delay(0.005), queue=Size(100_000)), Impairment(delay=Delay(0.005)))
    with inside(world.paths[1]):
        server = socket.create_server(("0.0.0.0", 7001))
    with inside(world.paths[0]):
        client = socket.socket()
    client.connect((str(address(1)), 7001))
    peer, _ = server.accept()
    received = 0

    def drain() -> None:
        nonlocal received
        while data := peer.recv(1 << 16):
            received += len(data)

    thread = threading.Thread(target=drain)
    thread.start()
    for turn in range(20):
        client.sendall(bytes(100_000))
        if turn == 5:
            world.driver.restart(world.lab)
    client.close()
    thread.join(30)
    server.close()
    peer.close()
    assert received == 2_000_000
    assert world.driver.health(world.lab).alive
