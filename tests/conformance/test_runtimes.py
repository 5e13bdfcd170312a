"""What every runtime must do: one body over the fake and the embedded one."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.enter import EnterToken
from emulator.core.errors import LabError, RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.core.units import Size
from emulator.runtimes.base import Command
from tests.runtime_world import World, eventually, make_runtime, plan_of

NEEDS = pytest.mark.needs("root", "netns", "cgroup", "overlay")
DOCKER = pytest.mark.needs("root", "netns", "cgroup", "overlay", "docker")
NAMES = ("fake", pytest.param("embedded", marks=NEEDS), pytest.param("docker", marks=DOCKER))
_numbers = itertools.count()


@pytest.fixture(params=NAMES)
def bare(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose lab has not been made."""
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    name = f"crt-{os.getpid()}-{next(_numbers)}"
    world = World(make_runtime(request.param), LabId.of(name), plan_of(name))
    yield world
    world.runtime.remove(world.lab)


@pytest.fixture
def world(bare: World) -> World:
    bare.create()
    return bare


def test_every_node_has_a_handle_and_machines_a_pid(bare: World) -> None:
    handles = bare.create()
    assert set(handles) == {"alpha", "beta", "core", "lan"}
    assert {name for name, handle in handles.items() if handle.pid} == {"alpha", "beta"}
    assert len({handle.netns for handle in handles.values()}) == 4


def test_what_is_made_is_journalled_first(bare: World) -> None:
    bare.create()
    assert bare.journal and all(bare.lab.name in name for _kind, name in bare.journal)


def test_programs_run_and_their_output_and_status_come_back(world: World) -> None:
    assert world.run("alpha", ["echo", "one", "two"]) == (0, "one two\n")
    assert world.run("beta", ["true"]) == (0, "")
    assert world.run("beta", ["false"]) == (1, "")


def test_a_node_knows_its_name_and_its_peers(world: World) -> None:
    assert world.run("alpha", ["hostname"]) == (0, "alpha\n")
    status, text = world.run("beta", ["cat", "/etc/hostname"])
    assert (status, text.strip()) == (0, "beta"), "Podman ends it without a new line"
    status, hosts = world.run("alpha", ["cat", "/etc/hosts"])
    assert status == 0
    assert {"127.0.0.1\tlocalhost", "10.0.0.1\talpha", "10.0.0.2\tbeta"} <= set(hosts.splitlines())


def test_the_environment_is_the_nodes_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLERS_SECRET", "x")
    names = ["EMU_LAB", "EMU_NODE", "EMU_TIME_SCALE", "OMP_NUM_THREADS", "GREETING"]
    assert world.run("alpha", ["printenv", *names]) == (0, f"{world.lab.name}\nalpha\n0.5\n2\nhello\n")
    assert world.run("alpha", ["printenv", "CALLERS_SECRET"]) == (1, "")
    assert world.run("beta", ["printenv", "EXTRA"], env=(("EXTRA", "more"),)) == (0, "more\n")


def test_a_program_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(RuntimeFailure, match=r"alpha: the program 'no-such-program' is not there; ."):
        world.run("alpha", ["no-such-program"])


@pytest.mark.parametrize(("node", "what"), [("gamma", "has no node of that name"), ("core", "runs no programs")])
def test_only_machines_of_the_lab_run_programs(world: World, node: str, what: str) -> None:
    with pytest.raises(RuntimeFailure, match=what):
        world.run(node, ["true"])
    with pytest.raises(RuntimeFailure, match=what):
        world.runtime.enter(world.lab, node)


def test_a_running_program_is_polled_waited_for_and_signalled(world: World) -> None:
    process = world.runtime.start(world.lab, "alpha", Command(("sleep", "30")))
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
    process.send_signal(signal.SIGTERM)


def test_a_lab_is_made_once(world: World) -> None:
    with pytest.raises(LabError, match="are there already; remove them with `emu down"):
        world.create()
    assert world.run("alpha", ["true"])[0] == 0, "the refused attempt harmed the first lab"


def test_remove_is_idempotent_and_frees_the_name(world: World) -> None:
    assert world.runtime.remove(world.lab)
    assert world.runtime.remove(world.lab) == []
    with pytest.raises(RuntimeFailure, match="has no node of that name"):
        world.run("alpha", ["true"])
    world.create()
    assert world.run("alpha", ["true"])[0] == 0


def test_remove_ends_running_programs(world: World) -> None:
    process = world.runtime.start(world.lab, "alpha", Command(("sleep", "60")))
    world.runtime.remove(world.lab)
    assert process.wait(10) == -signal.SIGKILL


def test_usage_counts_from_the_nodes_start(world: World) -> None:
    before = world.runtime.usage(world.lab, ["alpha", "beta"])
    assert set(before) == {"alpha", "beta"}
    for _ in range(3):
        world.run("alpha", ["true"])
    after = world.runtime.usage(world.lab, ["alpha"])["alpha"]
    assert after.cpu > before["alpha"].cpu
    assert after.running and after.oom_kills == 0
    assert after.memory_peak >= after.memory >= 0
    assert 1 <= after.pids <= 4


def test_usage_of_an_unknown_node_is_an_error(world: World) -> None:
    with pytest.raises(RuntimeFailure, match="has no node of that name"):
        world.runtime.usage(world.lab, ["gamma"])


def test_shared_pages_are_added_to_usage_and_set_not_summed(world: World) -> None:
    for _ in range(2):
        world.runtime.charge_shared(world.lab, "alpha", Size(64 << 20))
    usage = world.runtime.usage(world.lab, ["alpha"])["alpha"]
    assert usage.shared == 64 << 20
    assert usage.memory >= usage.shared and usage.memory_peak >= usage.shared
    world.runtime.charge_shared(world.lab, "alpha", Size(0))
    assert world.runtime.usage(world.lab, ["alpha"])["alpha"].shared == 0


def test_shared_pages_must_fit_into_the_nodes_memory(world: World) -> None:
    with pytest.raises(RuntimeFailure, match="alpha: its memory of 256 MiB is too little beside the 250 MiB"):
        world.runtime.charge_shared(world.lab, "alpha", Size(250 << 20))


def test_a_node_that_died_says_so_and_keeps_its_figures(world: World) -> None:
    world.run("alpha", ["true"])
    world.runtime.signal_init(world.lab, "alpha", signal.SIGKILL)
    assert eventually(lambda: not world.runtime.usage(world.lab, ["alpha"])["alpha"].running)
    assert world.runtime.usage(world.lab, ["alpha"])["alpha"].cpu > 0
    with pytest.raises(RuntimeFailure, match="alpha: the node is gone"):
        world.run("alpha", ["true"])
    assert world.run("beta", ["hostname"]) == (0, "beta\n")


def test_sigterm_ends_a_node(world: World) -> None:
    process = world.runtime.start(world.lab, "alpha", Command(("sleep", "60")))
    world.runtime.signal_init(world.lab, "alpha", signal.SIGTERM)
    assert process.wait(10) in (-signal.SIGTERM, -signal.SIGKILL)
    assert eventually(lambda: not world.runtime.usage(world.lab, ["alpha"])["alpha"].running)


def test_a_nodes_command_starts_when_told_and_writes_its_log(bare: World) -> None:
    bare.plan = plan_of(bare.lab.name, command=("echo", "from", "the", "node"))
    bare.create()

    def log() -> str:
        return b"".join(bare.runtime.log(bare.lab, "alpha")).decode()

    assert log() == ""
    for _ in range(2):
        bare.runtime.start_commands(bare.lab, bare.plan)
    assert eventually(lambda: "from the node" in log())
    assert log().count("from the node") == 1


def test_a_token_travels_as_json(world: World) -> None:
    token = world.runtime.enter(world.lab, "alpha")
    assert EnterToken.from_json(token.to_json()) == token
    assert token.node == "alpha" and token.threads == 2


def test_two_labs_are_apart(world: World) -> None:
    other = World(world.runtime, LabId.of(world.lab.name + "b"), plan_of(world.lab.name + "b"))
    other.create()
    try:
        assert other.run("alpha", ["printenv", "EMU_LAB"]) == (0, other.lab.name + "\n")
        world.runtime.remove(world.lab)
        assert other.run("alpha", ["true"])[0] == 0
    finally:
        other.runtime.remove(other.lab)
