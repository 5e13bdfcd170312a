"""What the netem driver tells the kernel about one direction, and what it makes of the kernel's answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.core.errors import LinkError
from emulator.core.loss import LossModel
from emulator.core.plan import CoDel, Impairment
from emulator.core.spread import Spread
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links import netem_line
from emulator.links.netem_netlink import attribute, attributes

#: no impairment where one must say so
PLAIN: dict[str, Any] = {
    "loss": Share(0), "duplicate": Share(0), "corrupt": Share(0), "early": Share(0), "early_gap": 1, "cut": False
}  # fmt: skip


def line(rate: float | None = 20e6, queue: int = 65536, **settings: float) -> netem_line.Line:
    impairment = Impairment(
        rate=None if rate is None else Rate(rate),
        delay=Delay(settings.get("delay", 0)),
        jitter=Delay(settings.get("jitter", 0)),
        loss=Share(settings.get("loss", 0)),
        queue=Size(queue),
        overhead=int(settings.get("overhead", 0)),
    )
    return netem_line.line_of(impairment, 1500, "link x")


def answer(wanted: netem_line.Line) -> netem_line.Line:
    """The line read back from what would be sent, with the burst as the kernel answers it (ticks of line time)."""
    sent = dict(attributes(netem_line.tbf(wanted)))
    options = dict(attributes(sent[2]))
    parms = bytearray(options[1])
    parms[28:32] = int(wanted.burst * 1e9 / wanted.rate / 64).to_bytes(4, "little")
    rest = [attribute(kind, value) for kind, value in options.items() if kind != 1]
    sent[2] = b"".join([attribute(1, bytes(parms)), *rest])
    gate, netem, queue, below = (
        dict(attributes(encoded(wanted)))
        for encoded in (netem_line.gate, netem_line.netem, netem_line.queue, netem_line.below)
    )
    told = netem_line.Answers(
        gate, sent, None if wanted.queued == ("bfifo",) else queue, netem, below if wanted.reorder else None
    )
    return netem_line.read(told)


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"loss": Share(0.1), "loss_model": LossModel("gilbert-elliott", (0.01, 0.3, 0.9, 0.02))},
        {"loss": Share(0.1), "loss_model": LossModel("4-state", (0.01, 0.3, 0.2, 0.4, 0.02))},
        {"duplicate": Share(0.01), "corrupt": Share(0.02), "early": Share(0.25), "early_gap": 5},
        {"queue_packets": 50},
        {"codel": CoDel(Delay(0.005), Delay(0.1))},
        {"spread": Spread("pareto")},
        {"cut": True, "loss": Share(0.1), "loss_model": LossModel("gilbert-elliott", (0.01, 0.3, 1.0, 0.0))},
    ],
    ids=lambda value: "-".join(value),
)
def test_every_setting_is_read_back(settings: dict[str, Any], reorder: bool) -> None:
    full = Impairment(Rate(20e6), Delay(0.05), Delay(0.01), queue=Size(65536), reorder=reorder, **settings)
    wanted = netem_line.line_of(full, 1500, "link x")
    plain = netem_line.line_of(replace(full, reorder=False, **dict.fromkeys(settings) | PLAIN), 1500, "link x")
    got = answer(wanted)
    assert netem_line.refused(wanted, got) == []
    if "spread" not in settings:  # the kernel tells no table
        assert netem_line.refused(plain, got) != []
    if settings.get("cut"):
        assert (wanted.loss, wanted.model) == (2**32 - 1, ())


def test_h_is_the_share_that_passes_in_the_bad_state() -> None:
    model = LossModel("gilbert-elliott", (0.25, 0.5, 1.0, 0.0))
    got = netem_line.line_of(Impairment(loss=Share(0.3), loss_model=model), 1500, "link x")
    assert got.model == (2, round(0.25 * (2**32 - 1)), round(0.5 * (2**32 - 1)), 0, 0)


def test_units_of_the_kernel() -> None:
    got = line(rate=20e6, delay=0.035, jitter=0.002, loss=0.01, overhead=8)
    assert (got.rate, got.delay, got.jitter) == (2_500_000, 35_000_000, 2_000_000)
    assert got.loss == pytest.approx(0.01 * 2**32, rel=1e-6)
    assert got.overhead == 8 - 14  # the kernel's packets have an Ethernet header, a Plan's have not


@pytest.mark.parametrize("rate", [1e5, 20e6, 1e9])
@pytest.mark.parametrize("queue", [4_000, 65_536, 4_000_000])
def test_queue_is_what_waits_beside_the_packet_on_the_line(rate: float, queue: int) -> None:
    got = line(rate=rate, queue=queue)
    assert got.burst >= 1514
    assert got.queue + got.burst == queue + 1500 + 14


@pytest.mark.parametrize("rate", [1e6, 20e6, 200e6])
def test_a_timer_that_is_late_by_milliseconds_costs_no_rate(rate: float) -> None:
    assert line(rate=rate, queue=1 << 20).burst * 8 / rate >= 0.0048


def test_half_of_a_short_queue_is_the_most_that_netem_holds() -> None:
    assert line(rate=1e6, queue=6000).burst == 2 * 1500 + 14


def test_a_queue_too_small_for_a_packet_still_holds_one() -> None:
    assert line(queue=0).queue == 1500


def test_netem_holds_more_smallest_packets_than_can_be_in_flight() -> None:
    got = line(rate=100e6, delay=0.05, jitter=0.01)
    assert got.packets * 64 * 8 > 100e6 * 0.06


def test_no_rate_is_a_line_that_nobody_feels_and_no_queue_that_fills() -> None:
    got = line(rate=None, queue=0)
    assert got.rate * 8 == 100e9
    assert got.queue > 100_000_000


def test_a_rate_that_bytes_per_second_cannot_hold_is_refused() -> None:
    with pytest.raises(LinkError, match=r"link x: netem cannot set a rate of 12 bit/s; use a rate from 400 bit/s"):
        line(rate=12)
    with pytest.raises(LinkError, match="cannot set a rate of 400 Gbit/s"):
        line(rate=400e9)


@given(
    rate=st.none() | st.floats(1e3, 1e11),
    queue=st.integers(0, 1 << 27),
    delay=st.floats(0, 100),
    jitter=st.floats(0, 2),
    loss=st.floats(0, 1),
    overhead=st.integers(0, 100),
)
def test_what_is_sent_is_read_back_equal(rate: float | None, queue: int, **settings: float) -> None:
    wanted = line(rate, queue, **settings)
    assert netem_line.refused(wanted, answer(wanted)) == []


def test_a_setting_that_the_kernel_cut_is_named() -> None:
    wanted = line(jitter=3)
    assert netem_line.refused(wanted, replace(wanted, jitter=2**31 - 1)) == ["jitter"]
    assert netem_line.refused(wanted, replace(wanted, burst=wanted.burst * 2)) == ["burst"]
