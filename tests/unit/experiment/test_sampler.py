"""The sampler of a run: what it holds against the host, on made-up readings of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulator.core.errors import DegradedError
from emulator.core.plan import Plan
from emulator.experiment.sampler import Sampler
from emulator.lab import overload
from emulator.lab.overload import Reading
from emulator.links.base import DriverHealth
from tests.quiet_host import later

SLOW_START = 9.0


class Host:
    """A host read at times of the test's choosing, with a lab that has nothing in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(overload, "groups", lambda lab: {})
        monkeypatch.setattr(overload, "read", lambda lab, stats, groups: Reading(later(seconds=self.seconds)))
        stats = SimpleNamespace(usage={}, cables={}, health=DriverHealth(True))
        self.lab = cast("Any", SimpleNamespace(plan=Plan("p", (), ()), stats=lambda: stats))


def causes(out: Path) -> list[str]:
    records = [json.loads(line) for line in (out / "controller.jsonl").read_text().splitlines()]
    return [record["cause"] for record in records if record["kind"] == "overload"]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_a_slow_start_of_the_roles_is_no_mark(host: Host, tmp_path: Path) -> None:
    sampler = Sampler(host.lab, tmp_path, strict=True)
    host.seconds += SLOW_START
    sampler.sample(0.0)  # the roles have started, and the budget has not
    host.seconds += SLOW_START
    sampler.begin()
    host.seconds += 1.0
    sampler.sample(1.0)
    sampler.close()
    assert causes(tmp_path) == []


def test_a_host_that_stands_still_later_is_one(host: Host, tmp_path: Path) -> None:
    sampler = Sampler(host.lab, tmp_path, strict=True)
    sampler.begin()
    host.seconds += SLOW_START
    with pytest.raises(DegradedError, match=r"could not run for 8\.0 s"):
        sampler.sample(9.0)
    sampler.close()
    assert causes(tmp_path) == ["stood still"]
