"""What capped time is worth: between its measurements, beyond them, and as it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.devices import delivery
from emulator.devices.delivery import Curve, smooth


def test_between_two_measurements_it_goes_by_the_logarithm_of_the_share() -> None:
    curve = Curve(((0.1, 0.8), (0.4, 1.0)))
    assert curve.at(0.1) == 0.8 and curve.at(0.4) == 1.0
    assert curve.at(0.2) == pytest.approx(0.9)


def test_a_smaller_share_than_any_measured_is_worth_as_the_smallest_and_a_whole_processor_1() -> None:
    curve = Curve(((0.1, 0.8), (0.4, 0.9)))
    assert curve.at(0.001) == 0.8
    assert curve.at(0.4) < curve.at(0.7) < curve.at(1.0) == curve.at(3.0) == 1.0


def test_without_measurements_nothing_is_corrected() -> None:
    assert [Curve().at(share) for share in (0.01, 0.5, 2.0)] == [1.0, 1.0, 1.0]


def test_a_disturbed_measurement_neither_exceeds_1_nor_falls_under_a_smaller_share() -> None:
    assert smooth({0.4: 1.2, 0.05: 0.1, 0.1: 0.9, 0.2: 0.85}).points == (
        (0.05, 0.6),
        (0.1, 0.9),
        (0.2, 0.9),
        (0.4, 1.0),
    )


def test_it_is_kept_for_this_host_and_a_damaged_file_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    delivery.known.cache_clear()
    try:
        assert delivery.known() == Curve()
        delivery.keep(smooth({0.1: 0.8}))
        assert delivery.known().at(0.1) == 0.8
        (tmp_path / "emu" / "delivery.json").write_text('{"another host": [[0.1, 0.7]]}')
        delivery.known.cache_clear()
        assert delivery.known() == Curve()
    finally:
        delivery.known.cache_clear()
