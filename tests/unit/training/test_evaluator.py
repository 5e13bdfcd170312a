"""Where the evaluator runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.training.evaluator import go_to


@pytest.fixture(autouse=True)
def _affinity() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def test_it_goes_where_a_process_ran_last() -> None:
    other = max(os.sched_getaffinity(0))
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {other})
        os.kill(os.getpid(), 19)
    os.waitpid(child, os.WUNTRACED)
    go_to(child)
    assert os.sched_getaffinity(0) == {other}
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert not Path(f"/proc/{child}").exists()
    go_to(child)
    assert os.sched_getaffinity(0) == set(range(os.cpu_count() or 1))
