"""The workload model under all sorts of steps and devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.devices.roofline import FIT, Load, Roofline, fit, load
from emulator.devices.workload import Operator, Step, reference

amounts = st.floats(0, 1e12)
rates = st.floats(1e6, 1e13)
operators = st.builds(
    Operator,
    kind=st.sampled_from(["matrix", "depthwise", "pass"]),
    phase=st.sampled_from(["forward", "backward", "update"]),
    flops=amounts,
    bytes=amounts,
    unfolded=amounts,
    tiles=amounts,
    tile_flops=amounts,
)
steps = st.builds(
    Step,
    model=st.just("any"),
    batch=st.integers(1, 64),
    image=st.just(32),
    parameters=st.just(1),
    operators=st.lists(operators, max_size=5).map(tuple),
)
rooflines = st.builds(Roofline, products=rates, passes=rates, tiles=rates)


@given(steps, operators, rooflines)
def test_one_more_operator_never_makes_a_step_shorter(step: Step, more: Operator, device: Roofline) -> None:
    longer = replace(step, operators=(*step.operators, more))
    assert device.seconds(longer) >= device.seconds(step)


@given(steps, rooflines, st.floats(1.01, 100))
def test_a_device_that_does_all_faster_is_as_much_faster(step: Step, device: Roofline, factor: float) -> None:
    faster = Roofline(device.products * factor, device.passes * factor, device.tiles * factor)
    assert faster.seconds(step) * factor == pytest.approx(device.seconds(step))


@given(steps)
def test_loads_add_up(step: Step) -> None:
    twice = load(replace(step, operators=step.operators * 2))
    once = load(step)
    assert twice == Load(*(pytest.approx(2 * value) for value in (once.products, once.passes, once.tiles)))


@given(st.floats(0.3, 1.4), st.floats(0.05, 0.9), st.floats(1e9, 1e12), st.floats(1e9, 1e12))
def test_the_fit_finds_the_efficiencies_that_a_device_has(e: float, m: float, hpl: float, stream: float) -> None:
    device = Roofline(e * 2 * hpl, m * stream, stream)
    found = fit(hpl, stream, {model: device.seconds(reference(model)) for model in FIT})
    assert found.products == pytest.approx(device.products, rel=1e-6)
    assert found.passes == pytest.approx(device.passes, rel=1e-6)
