"""The sampler of a run: what it holds against the host, on made-up readings of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulator.core.plan import Plan
from emulator.experiment.sampler import Sampler
from emulator.lab import overload
from emulator.lab.load import Load
from emulator.lab.overload import Reading
from emulator.links.base import DriverHealth

QUIET = Load(at=100.0, wall=5000.0, boot=100.0, cores=2, total=1000.0, steal=1.0, available=0.8, stalled=3.0)
SLOW_START = 9.0


class Host:
    """A host read at times of the test's choosing, with a lab that has nothing in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(overload, "groups", lambda lab: {})
        monkeypatch.setattr(overload, "read", lambda lab, stats, groups: self.reading())
        stats = SimpleNamespace(usage={}, cables={}, health=DriverHealth(True))
        self.lab = cast("Any", SimpleNamespace(plan=Plan("p", (), ()), stats=lambda: stats))

    def reading(self) -> Reading:
        at, wall, boot = QUIET.at + self.seconds, QUIET.wall + self.seconds, QUIET.boot + self.seconds
        return Reading(replace(QUIET, at=at, wall=wall, boot=boot, total=QUIET.total + 2 * self.seconds))


def causes(out: Path) -> list[str]:
    records = [json.loads(line) for line in (out / "controller.jsonl").read_text().splitlines()]
    return [record["cause"] for record in records if record["kind"] == "overload"]


@pytest.mark.parametrize(("begins", "found"), [(True, []), (False, ["stood still"])])
def test_a_slow_start_of_the_roles_is_no_mark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begins: bool, found: list[str]
) -> None:
    host = Host(monkeypatch)
    sampler = Sampler(host.lab, tmp_path)
    host.seconds += SLOW_START
    if begins:
        sampler.begin()
        host.seconds += 1.0
    sampler.sample(1.0)
    sampler.close()
    assert causes(tmp_path) == found
