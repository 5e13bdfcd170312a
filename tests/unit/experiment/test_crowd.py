"""How much workers that compute at once hold each other up, against cases that can be counted by hand."""

from __future__ import annotations

import pytest

from emulator.experiment.crowd import Computing, stretch


def test_nobody_is_held_up_where_all_caps_fit() -> None:
    assert stretch([Computing(0.16, 1.0)] * 10, room=1.6) == pytest.approx(1.0)


def test_one_worker_alone_is_never_held_up() -> None:
    assert stretch([Computing(1.0, 0.9)], room=2.0) == 1.0
    assert stretch([Computing(2.0, 0.9)], room=0.5) == 1.0, "what one can have is its pace"


def test_two_that_always_compute_share_a_core() -> None:
    assert stretch([Computing(1.0, 1.0)] * 2, room=1.0) == pytest.approx(2.0)


def test_two_that_compute_half_the_time_meet_half_the_time() -> None:
    assert stretch([Computing(1.0, 0.5)] * 2, room=1.0) == pytest.approx(1.5)


def test_the_worst_placed_kind_counts() -> None:
    small, large = Computing(0.2, 1.0), Computing(1.0, 0.1)
    assert stretch([small, large], room=1.0) == pytest.approx(1.2), "the large one always meets the small one"
