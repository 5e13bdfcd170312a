"""A link's end at a device is never faster than the device's network port."""

from __future__ import annotations

import pytest

from emulator.topology.presets import ETHERNET_OVERHEAD
from tests.unit.topology.cluster import plan_of


def rates(device: str, link: str = "") -> tuple[float | None, float | None]:
    plan = plan_of(f"nodes: {{a: {{device: {device}}}, b: }}\nlinks: [{{from: a, to: b{link}}}]")
    return plan.links[0].a_to_b.rate, plan.links[0].b_to_a.rate


def test_the_port_limits_both_directions_and_a_device_without_a_figure_none() -> None:
    assert rates("rpi-4") == (1e9, 1e9)
    assert rates("rpi-3b", ", preset: lan") == (100e6, 100e6)
    assert rates("server") == rates("laptop") == (None, None)


def test_a_slower_line_stays_as_it_is_each_way_by_itself() -> None:
    assert rates("rpi-3b-plus", ", preset: dsl") == (384e3, 1.5e6)
    assert rates("rpi-3b-plus", ", up: 2 Mbit, down: 500 Mbit") == (2e6, 319e6)


def test_the_slower_of_two_ports_counts() -> None:
    plan = plan_of("nodes: {a: {device: rpi-4}, b: {device: rpi-3b}}\nlinks: [{from: a, to: b}]")
    assert plan.links[0].a_to_b.rate == plan.links[0].b_to_a.rate == 100e6
    assert "a--b: 100 Mbit/s, for the network port of rpi-3b is no faster" in plan.notes


def test_tcp_over_the_port_comes_to_what_was_measured_on_the_board() -> None:
    way = plan_of("nodes: {a: {device: rpi-3b-plus}, b: }\nlinks: [{from: a, to: b}]").links[0].a_to_b
    assert way.overhead == ETHERNET_OVERHEAD
    assert way.rate
    assert way.rate * 1448 / (1500 + way.overhead) == pytest.approx(300e6, rel=0.005)


def test_a_limited_line_gets_a_queue_of_its_rate() -> None:
    plan = plan_of("nodes: {a: {device: rpi-3b}, b: }\nlinks: [{from: a, to: b, queue: 10 ms}]")
    assert plan.links[0].a_to_b.queue == pytest.approx(100e6 / 8 * 0.01, rel=0.01)
