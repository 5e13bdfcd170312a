"""What capped time is worth: between its measurements, beyond them, and as it is kept."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from emulator.devices import delivery
from emulator.devices.delivery import Curve, fit, smooth


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
        (0.05, 0.55),
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
        delivery.keep({"matrix": smooth({0.1: 0.9}), "training": smooth({0.1: 0.8})})
        assert delivery.known("matrix").at(0.1) == 0.9
        assert delivery.known("training").at(0.1) == 0.8
        (tmp_path / "emu" / "delivery.json").write_text('{"another host": {"training": [[0.1, 0.7]]}}')
        delivery.known.cache_clear()
        assert delivery.known() == Curve()
    finally:
        delivery.known.cache_clear()


def test_the_quota_for_a_work_is_larger_and_so_worth_a_little_more_itself() -> None:
    curve = Curve(((0.05, 0.7), (0.1, 0.8), (0.4, 1.0)))
    worth = curve.for_work(0.07)
    assert worth == pytest.approx(curve.at(0.07 / worth), abs=1e-3)
    assert curve.at(0.07) < worth < 1
    assert curve.for_work(1.0) == curve.for_work(2.0) == 1.0


def test_the_fit_finds_a_processor_that_comes_back_exponentially() -> None:
    def worth(share: float) -> float:  # half its speed is lacking at first, and comes back within 0.4 ms
        stretch = share * 0.01 / 0.0004
        return 1 - 0.5 * (1 - math.exp(-stretch)) / stretch

    curve = fit({share: worth(share) for share in delivery.SHARES})
    for share in delivery.KEPT:
        assert curve.at(share) == pytest.approx(worth(share), abs=0.005)


def test_the_fit_of_readings_over_1_is_no_loss_at_all() -> None:
    assert {worth for _, worth in fit({0.08: 1.03, 0.15: 1.01, 0.3: 1.0}).points} == {1.0}
