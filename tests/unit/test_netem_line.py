"""What the netem driver tells the kernel about one direction, and what it makes of the kernel's answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.core.errors import LinkError
from emulator.core.plan import Impairment
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links import netem_line
from emulator.links.netem_netlink import attribute, attributes


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
    gate, netem = (dict(attributes(encoded(wanted))) for encoded in (netem_line.gate, netem_line.netem))
    return netem_line.read(gate, sent, netem)


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
