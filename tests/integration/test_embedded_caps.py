"""The caps of a node hold, and what they cost is counted. How exactly they hold is for tests/bench/cpu.py."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.lab_id import LabId
from emulator.core.plan import Plan
from emulator.core.units import Share
from emulator.runtimes import cgroups
from emulator.runtimes.base import Command
from emulator.runtimes.caps import PRECEDENCE
from tests.runtime_world import World, machine, make_runtime, plan_of

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    name = f"cap-{os.getpid()}-{next(_numbers)}"
    made = World(make_runtime("embedded"), LabId.of(name), plan_of(name, host_cpus=Share(0.2)))
    made.create()
    yield made
    made.runtime.remove(made.lab)


def test_a_busy_node_gets_no_more_than_its_share_and_is_seen_to_be_throttled(world: World) -> None:
    process = world.runtime.start(world.lab, "alpha", Command(("sh", "-c", "while :; do :; done")))
    time.sleep(0.2)
    before, start = world.runtime.usage(world.lab, ["alpha"])["alpha"], time.monotonic()
    time.sleep(1.5)
    after, end = world.runtime.usage(world.lab, ["alpha"])["alpha"], time.monotonic()
    process.send_signal(9)
    process.wait(10)
    got = (after.cpu - before.cpu) / (end - start)
    assert 0 < got <= 0.2 * 1.1
    assert after.periods - before.periods >= 50
    assert after.throttled_periods > before.throttled_periods and after.throttled > before.throttled


def test_an_idle_node_is_not_throttled(world: World) -> None:
    before = world.runtime.usage(world.lab, ["beta"])["beta"]
    time.sleep(0.3)
    after = world.runtime.usage(world.lab, ["beta"])["beta"]
    assert after.throttled_periods == before.throttled_periods
    assert after.cpu - before.cpu < 0.02


def test_a_lab_goes_before_the_hosts_own_programs(world: World) -> None:
    found = cgroups.detect()
    group = found.root("cpu")
    assert group is not None
    file, each = ("cpu.weight", 100) if found.is_v2("cpu") else ("cpu.shares", 1024)
    assert int((group / world.lab.cgroup / file).read_text()) == round(0.7 * each * PRECEDENCE)
    assert int((group / "emu" / file).read_text()) >= each
    nodes = {node: int((group / world.lab.node_cgroup(node) / file).read_text()) for node in ("alpha", "beta")}
    assert nodes == {"alpha": round(0.2 * each), "beta": round(0.5 * each)}


def test_a_node_of_many_cores_is_made_too(world: World) -> None:
    lab = LabId.of(world.lab.name + "m")
    nodes = (machine("big", host_cpus=Share(3.5), memory=type(world.plan.nodes[0].memory)(0)),)
    other = World(world.runtime, lab, Plan(lab.name, nodes, ()))
    other.create()
    try:
        assert other.run("big", ["true"])[0] == 0
    finally:
        other.runtime.remove(lab)


def test_the_memory_of_a_node_bounds_what_it_writes_to_files_too(world: World) -> None:
    script = "head -c 200000000 /dev/zero > /tmp/big 2>&1; ls -l /tmp/big | awk '{print $5}'"
    status, text = world.run("alpha", ["sh", "-c", script])
    assert status == 0 and 0 < int(text.split()[-1]) <= 128 << 20, "half of the node's 256 MiB"
    assert world.run("alpha", ["true"])[0] == 0
