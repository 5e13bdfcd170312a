"""The caps of a node hold, and what they cost is counted, whoever made it. How exactly is for tests/bench/cpu.py."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import pytest

from emulator.core import linux
from emulator.core.lab_id import LabId
from emulator.core.plan import Plan
from emulator.core.units import Share, Size
from emulator.runtimes import cgroups, state
from emulator.runtimes.base import Command
from emulator.runtimes.caps import PRECEDENCE, settings
from emulator.runtimes.cgroups import NodeGroups
from emulator.runtimes.docker import engine, place
from emulator.runtimes.namespaces import CAPABILITIES
from tests.runtime_world import World, eventually, machine, make_runtime, plan_of

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()
EMBEDDED, DOCKER = "embedded", pytest.param("docker", marks=pytest.mark.needs("docker"))
#: the place that an engine with the systemd driver gives to containers, apart from its being a slice
OWN_GROUPS = pytest.param("docker, in groups of the engine's", marks=pytest.mark.needs("docker"))


@pytest.fixture(scope="module", params=[EMBEDDED, DOCKER, OWN_GROUPS])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMU_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        if "groups" in request.param:
            patch.setattr(place, "by_files", lambda _client: False)
        name = f"cap-{os.getpid()}-{next(_numbers)}"
        plan = plan_of(name, host_cpus=Share(0.2), memory=Size(64 << 20), pids=40)
        made = World(make_runtime(request.param.partition(",")[0]), LabId.of(name), plan)
        made.create()
        made.runtime.start_commands(made.lab, made.plan)
        yield made
        made.runtime.remove(made.lab)


def test_the_kernel_holds_what_was_asked(world: World) -> None:
    process = world.runtime.start(world.lab, "alpha", Command(("sleep", "30")))
    groups = world.runtime.groups(world.lab, "alpha")
    inner = NodeGroups.of_process(groups.hierarchies, process.pid)
    process.send_signal(9)
    process.wait(10)
    for controller, file, value in settings(groups.hierarchies, world.plan.nodes[0]):
        for held in (groups, inner):
            path = held.file(controller, file)
            assert not path.exists() or path.read_text().strip() == value, path


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


@pytest.mark.parametrize("world", [EMBEDDED, DOCKER], indirect=True)
def test_a_lab_goes_before_the_hosts_own_programs(world: World) -> None:
    found = cgroups.detect()
    group = found.root("cpu")
    assert group is not None
    file, each = ("cpu.weight", 100) if found.is_v2("cpu") else ("cpu.shares", 1024)
    assert int((group / world.lab.cgroup / file).read_text()) == round(0.7 * each * PRECEDENCE)
    assert int((group / "emu" / file).read_text()) >= each
    nodes = {node: int((group / world.lab.node_cgroup(node) / file).read_text()) for node in ("alpha", "beta")}
    assert nodes == {"alpha": round(0.2 * each), "beta": round(0.5 * each)}


def test_a_program_that_takes_too_much_memory_is_ended_and_counted(world: World) -> None:
    before = world.runtime.usage(world.lab, ["alpha"])["alpha"].oom_kills
    status, _ = world.run("alpha", ["sh", "-c", "head -c 200000000 /dev/zero | tail"])
    assert status == 137
    assert world.runtime.usage(world.lab, ["alpha"])["alpha"].oom_kills == before + 1
    assert world.runtime.usage(world.lab, ["beta"])["beta"].oom_kills == 0
    assert world.run("alpha", ["true"])[0] == 0


def test_a_node_that_forks_without_end_is_bounded(world: World) -> None:
    script = "i=0; while [ $i -lt 60 ]; do sleep 2 & i=$((i+1)); done"
    status, _ = world.run("alpha", ["sh", "-c", script], stderr=None)
    assert status == 2, "the shell was given all the processes that it asked for"
    assert world.runtime.usage(world.lab, ["alpha"])["alpha"].pids <= 40
    assert world.run("beta", ["true"])[0] == 0
    assert eventually(lambda: world.runtime.usage(world.lab, ["alpha"])["alpha"].pids < 10)


@pytest.mark.parametrize("world", [DOCKER, OWN_GROUPS], indirect=True)
def test_a_container_is_what_the_engine_was_told(world: World) -> None:
    told = engine.client().inspect_container(state.read(world.lab)["alpha"].container)
    host = told["HostConfig"]
    assert (host["CpuQuota"], host["CpuPeriod"], host["NanoCpus"]) == (2000, 10_000, 0)
    assert host["Memory"] == host["MemorySwap"] == 64 << 20
    assert (host["PidsLimit"], host["ShmSize"], host["Init"]) == (40, 32 << 20, True)
    assert host["Privileged"] is False and host["NetworkMode"] == "none"
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert told["Config"]["Labels"].items() >= {"emu.lab": world.lab.name, "emu.node": "alpha"}.items()
    status = world.run("alpha", ["cat", "/proc/1/status", "/proc/self/status"])[1]
    assert status.count("NoNewPrivs:\t1") == 2
    bounds = {line.split()[1] for line in status.splitlines() if line.startswith("CapBnd")}
    assert bounds == {f"{sum(1 << linux.CAPABILITIES[name] for name in CAPABILITIES):016x}"}


@pytest.mark.parametrize("world", [EMBEDDED, DOCKER], indirect=True)
def test_a_node_of_many_cores_is_made_too(world: World) -> None:
    lab = LabId.of(world.lab.name + "m")
    nodes = (machine("big", host_cpus=Share(3.5), memory=Size(0)),)
    other = World(world.runtime, lab, Plan(lab.name, nodes, ()))
    other.create()
    try:
        assert other.run("big", ["true"])[0] == 0
    finally:
        other.runtime.remove(lab)


@pytest.mark.parametrize("world", [EMBEDDED], indirect=True)
def test_the_memory_of_a_node_bounds_what_it_writes_to_files_too(world: World) -> None:
    script = "head -c 200000000 /dev/zero > /tmp/big 2>&1; ls -l /tmp/big | awk '{print $5}'"
    status, text = world.run("alpha", ["sh", "-c", script])
    assert status == 0 and 0 < int(text.split()[-1]) <= 32 << 20, "half of the node's 64 MiB"
    assert world.run("alpha", ["true"])[0] == 0


def test_shared_pages_lower_the_cap_of_a_living_node(world: World) -> None:
    world.runtime.charge_shared(world.lab, "beta", Size(64 << 20))
    groups = world.runtime.groups(world.lab, "beta")
    file = "memory.max" if groups.hierarchies.is_v2("memory") else "memory.limit_in_bytes"
    assert int(groups.file("memory", file).read_text()) == (256 - 64) << 20
    assert world.runtime.usage(world.lab, ["beta"])["beta"].shared == 64 << 20


def test_a_dead_node_keeps_the_figures_that_were_read(world: World) -> None:
    """The last test of the module: it ends a node."""
    last = world.runtime.usage(world.lab, ["alpha"])["alpha"]
    world.runtime.signal_init(world.lab, "alpha", 9)
    assert eventually(lambda: not world.runtime.usage(world.lab, ["alpha"])["alpha"].running)
    dead = world.runtime.usage(world.lab, ["alpha"])["alpha"]
    assert dead.cpu >= last.cpu > 0 and dead.oom_kills == last.oom_kills
