"""The arithmetic of a direction: each impairment, one after another, to the last digit."""

from __future__ import annotations

import pytest

from emulator.core.plan import Impairment
from emulator.core.rng import light
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links.fake import Direction
from emulator.links.model import TCP_HEADERS


def direction(**impairment: object) -> Direction:
    return Direction(Impairment(**impairment), light(1, "test"))  # type: ignore[arg-type]


def test_a_packet_takes_the_line_and_then_the_delay() -> None:
    line = direction(rate=Rate(1e6), delay=Delay(0.01), queue=Size(1e6), overhead=4)
    assert line.send(5.0, 1246) == pytest.approx(5.0 + 0.01 + 0.01)
    assert line.send(5.0, 1246) == pytest.approx(5.0 + 0.02 + 0.01)
    assert line.send(9.0, 1246) == pytest.approx(9.0 + 0.02)


def test_without_a_rate_only_the_delay_counts() -> None:
    line = direction(delay=Delay(0.25))
    assert [line.send(0.0, 60_000) for _ in range(3)] == [0.25] * 3


def test_the_queue_is_bounded_beside_the_packet_on_the_line() -> None:
    line = direction(rate=Rate(1e6), queue=Size(3000))
    assert [line.send(0.0, 1500) is not None for _ in range(5)] == [True, True, True, False, False]
    assert line.send(0.012, 1500) is not None


def test_jitter_spreads_and_keeps_order() -> None:
    line = direction(delay=Delay(0.02), jitter=Delay(0.01))
    sparse = [(line.send(float(n), 100) or 0) - n for n in range(2000)]
    assert min(sparse) >= 0.01
    assert max(sparse) <= 0.03
    assert max(sparse) - min(sparse) > 0.019
    dense = [line.send(5000 + n / 1000, 100) or 0 for n in range(2000)]
    assert dense == sorted(dense)


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.5, 1.0])
def test_losses_are_of_the_set_share(loss: float) -> None:
    line = direction(loss=Share(loss))
    lost = sum(line.send(0.0, 100) is None for _ in range(20_000))
    assert lost == pytest.approx(20_000 * loss, abs=4 * (20_000 * loss * (1 - loss)) ** 0.5)


def test_losses_in_a_train_are_those_of_its_packets() -> None:
    line = direction(loss=Share(0.1))
    passed = lost = 0
    while passed + lost < 50_000:
        left = 40
        while left:
            run = line.survivors(left)
            passed += run
            lost += run < left
            left -= min(left, run + 1)
    assert lost / (passed + lost) == pytest.approx(0.1, abs=0.006)


def test_the_same_seed_loses_the_same_packets() -> None:
    first, second = (direction(loss=Share(0.3), jitter=Delay(0.1), delay=Delay(1)) for _ in range(2))
    assert [first.send(float(n), 9) for n in range(200)] == [second.send(float(n), 9) for n in range(200)]


def test_a_change_keeps_what_waits_and_moves_it_to_the_new_rate() -> None:
    line = direction(rate=Rate(1e6), delay=Delay(0.1), queue=Size(1e6))
    finish = [line.enqueue(0.0, 1250) or 0.0 for _ in range(3)]
    arrival = [line.arrival(at) for at in finish]
    move = line.change(0.015, Impairment(rate=Rate(2e6), delay=Delay(0.2), queue=Size(1e6)))
    assert move.arrival(finish[0], arrival[0], 0.0) == pytest.approx(0.11)
    assert move.arrival(finish[1], arrival[1], 0.0) == pytest.approx(0.0175 + 0.2)
    assert line.free == pytest.approx(0.0225)


def test_a_shorter_delay_does_not_overtake() -> None:
    line = direction(delay=Delay(1.0))
    before = line.send(0.0, 100)
    line.change(0.1, Impairment(delay=Delay(0.1)))
    assert before == 1.0
    assert line.send(0.2, 100) == 1.0
    assert line.send(2.0, 100) == pytest.approx(2.1)


def test_a_message_pays_headers_waits_for_the_line_and_for_losses() -> None:
    line = direction(rate=Rate(8e6), delay=Delay(0.5), loss=Share(0.2), queue=Size(0))
    first = line.transfer(0.0, 1448 * 100)
    assert first.start == 0.0
    assert first.free == pytest.approx(100 * (1448 + TCP_HEADERS) / 1e6 / 0.8)
    assert first.arrival == pytest.approx(first.free + 0.5)
    assert line.transfer(0.0, 1).start == first.free
