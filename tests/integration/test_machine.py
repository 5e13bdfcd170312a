"""A node sees its own machine, and writes no faster than its card."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.lab_id import LabId
from emulator.core.plan import Plan, StoragePlan
from emulator.core.units import Share, Size
from emulator.runtimes import state
from tests.runtime_world import World, eventually, machine, make_runtime

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()
DOCKER = pytest.param("docker", marks=pytest.mark.needs("docker"))
BOARD = {"machine": "Board 7", "clock": 1.5e9, "memory": Size(128 << 20)}


@pytest.fixture(scope="module", params=["embedded", DOCKER])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMU_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.delenv("EMU_NODE_DIR", raising=False)
        lab = LabId.of(f"mach-{os.getpid()}-{next(_numbers)}")
        nodes = (
            machine("board", cpus=Share(4), host_cpus=Share(0.4), **BOARD),
            machine("one", cpus=Share(1), host_cpus=Share(0.4), **BOARD),
            machine("plain", host_cpus=Share(0.4), memory=Size(128 << 20)),
        )
        made = World(make_runtime(request.param), lab, Plan(lab.name, nodes, ()))
        made.create()
        made.runtime.start_commands(made.lab, made.plan)
        yield made
        made.runtime.remove(made.lab)


def _read(world: World, node: str, path: str) -> str:
    status, text = world.run(node, ["cat", path])
    assert status == 0
    return text


def test_a_board_shows_its_own_processors_and_memory(world: World) -> None:
    assert _read(world, "board", "/sys/devices/system/cpu/online") == "0-3\n"
    assert _read(world, "one", "/sys/devices/system/cpu/online") == "0\n"
    assert _read(world, "board", "/proc/cpuinfo").count("Board 7") >= 1
    assert _read(world, "board", "/proc/cpuinfo").count("processor\t:") == 4
    assert _read(world, "board", "/proc/meminfo").split()[1] == str(128 << 10)


def test_a_node_that_is_no_board_shows_the_host(world: World) -> None:
    for path in ("/sys/devices/system/cpu/online", "/proc/cpuinfo"):
        assert _read(world, "plain", path).split()[0] == Path(path).read_text().split()[0]
    assert _read(world, "plain", "/proc/meminfo").splitlines()[0] == Path("/proc/meminfo").read_text().splitlines()[0]


def test_programs_that_ask_for_their_processors_get_no_more_than_the_board_has(world: World) -> None:
    allowed = world.run("one", ["grep", "Cpus_allowed_list", "/proc/self/status"])[1].split()[1]
    assert allowed.isdigit(), "one processor of this host"
    everything = Path("/proc/self/status").read_text().split("Cpus_allowed_list:\t")[1].split()[0]
    assert world.run("board", ["grep", "Cpus_allowed_list", "/proc/self/status"])[1].split()[1] == everything


def test_what_is_shown_cannot_be_changed_from_within(world: World) -> None:
    assert world.run("board", ["sh", "-c", "echo 0-63 > /sys/devices/system/cpu/online"], stderr=None)[0] != 0
    assert world.run("board", ["umount", "/proc/cpuinfo"], stderr=None)[0] != 0


@pytest.mark.parametrize("world", ["embedded"], indirect=True)
def test_memory_and_processor_time_are_kept_current(world: World) -> None:
    def free() -> int:
        return int(_read(world, "board", "/proc/meminfo").split("MemFree:")[1].split()[0])

    def busy() -> int:
        return int(_read(world, "board", "/proc/stat").split()[1])

    free_before, busy_before = free(), busy()
    script = "head -c 20000000 /dev/zero > /dev/shm/held; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    assert world.run("board", ["sh", "-c", script])[0] == 0
    assert eventually(lambda: free() < free_before - 15_000 and busy() > busy_before)


@pytest.mark.parametrize("runtime", ["embedded", DOCKER])
def test_a_card_is_no_faster_than_its_device(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it is said why it is not held, where the files of nodes lie on no disk."""
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("EMU_NODE_DIR", str(tmp_path / "nodes"))
    lab = LabId.of(f"card-{os.getpid()}-{runtime}")
    card = StoragePlan(read=2e6, write=2e6)
    nodes = (machine("n", host_cpus=Share(0.5), memory=Size(128 << 20), storage=card),)
    world = World(make_runtime(runtime), lab, Plan(lab.name, nodes, (), time_scale=2.0))
    world.create()
    try:
        world.runtime.start_commands(lab, world.plan)
        if said := state.read(lab)["n"].storage:
            assert said.startswith(("the file system of", "this host has no"))
            return
        start = time.monotonic()
        for options in ("oflag=direct", "conv=fsync"):
            assert (
                world.run("n", ["dd", "if=/dev/zero", "of=/file", "bs=128k", "count=8", options], stderr=None)[0] == 0
            )
        assert time.monotonic() - start > 2 * 0.7, "2 MiB at 1 MB/s of real time"
        start = time.monotonic()
        assert world.run("n", ["dd", "if=/file", "of=/dev/null", "bs=128k", "iflag=direct"], stderr=None)[0] == 0
        assert time.monotonic() - start > 0.7
    finally:
        world.runtime.remove(lab)
