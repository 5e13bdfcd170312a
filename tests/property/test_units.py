"""Units: what is written parses back to the same value, and nonsense is refused with a sentence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.core.units import Delay, Quantity, Rate, Share, Size

KINDS = [Rate, Delay, Size, Share]
numbers = st.floats(min_value=0, max_value=1e15, allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
@given(number=numbers)
def test_text_of_a_quantity_parses_back_to_it(kind: type[Quantity], number: float) -> None:
    quantity = kind(number)
    assert kind.parse(str(quantity)) == quantity


@pytest.mark.parametrize("kind", KINDS)
@given(number=st.floats(min_value=0, max_value=1e9, allow_nan=False), data=st.data())
def test_each_unit_means_its_factor(kind: type[Quantity], number: float, data: st.DataObject) -> None:
    unit, factor = data.draw(st.sampled_from(sorted(kind.units.items())))
    assert kind.parse(f"{number!r} {unit}") == pytest.approx(number * factor)
    assert kind.parse(f"{number!r}{unit.upper()}") == pytest.approx(number * factor)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=12))
def test_any_text_is_a_finite_quantity_or_a_sentence(kind: type[Quantity], text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError as error:
        assert ";" in str(error)
    else:
        assert math.isfinite(value)
        assert value >= 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value", [-1.0, "-3", "-0.5 %", None, True, [], {}, "nan", float("inf"), float("nan"), "1e999"]
)
def test_what_is_no_quantity_is_refused(kind: type[Quantity], value: object) -> None:
    with pytest.raises(ValueError, match=r"write|must be|use one of"):
        kind.parse(value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Rate, "20 Mbit", 20e6),
        (Rate, "20Mbit/s", 20e6),
        (Rate, "384 kbps", 384e3),
        (Delay, "35 ms", 0.035),
        (Delay, "2 min", 120),
        (Size, "4 GiB", 4 * 2**30),
        (Size, "4 GB", 4e9),
        (Share, "1 %", 0.01),
        (Share, 0.5, 0.5),
        (Share, 2, 2),
        (Rate, 0, 0),
    ],
)
def test_what_people_write(kind: type[Quantity], text: object, value: float) -> None:
    assert kind.parse(text) == pytest.approx(value)


@pytest.mark.parametrize(("kind", "text"), [(Rate, "20"), (Rate, 20), (Delay, 35), (Size, "4"), (Delay, "4 GiB")])
def test_a_missing_or_foreign_unit_is_refused_with_an_example(kind: type[Quantity], text: object) -> None:
    with pytest.raises(ValueError, match=f"like '{kind.example}'"):
        kind.parse(text)
