"""Whatever happens to the maker of a lab, removing leaves nothing of it, and touches nothing else."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.core.units import Share
from emulator.runtimes import cgroups
from emulator.runtimes.base import Command
from emulator.runtimes.embedded import EmbeddedRuntime, find_labs
from tests.integration.traces import marked, members
from tests.runtime_world import eventually, machine, plan_of

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()
KINDS = ("net", "mnt", "pid", "uts", "ipc")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabId]:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    found = LabId.of(f"cln-{os.getpid()}-{next(_numbers)}")
    yield found
    EmbeddedRuntime().remove(found)


def no_journal(_kind: str, _name: str) -> None:
    return


def create(lab: LabId, machines: int = 4) -> None:
    nodes = (*(machine(f"n-{number}") for number in range(machines)), NodePlan("core", kind="router"))
    EmbeddedRuntime().create(lab, Plan(lab.name, nodes, ()), nodes, no_journal)


@contextmanager
def held_namespaces(pids: list[int]) -> Iterator[set[tuple[str, int]]]:
    """The namespaces of these processes that are not this process's own, held so that no number is given anew."""
    fds = []
    for pid, kind in itertools.product(pids, KINDS):
        try:
            fds.append((kind, os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)))
        except OSError:
            continue
    yield {(kind, os.fstat(fd).st_ino) for kind, fd in fds} - namespaces([os.getpid()])
    for _, fd in fds:
        os.close(fd)


def namespaces(pids: list[int]) -> set[tuple[str, int]]:
    """The namespaces that these processes are in."""
    found = set()
    for pid, kind in itertools.product(pids, KINDS):
        try:
            found.add((kind, os.stat(f"/proc/{pid}/ns/{kind}").st_ino))
        except OSError:
            continue
    return found


def every_pid() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def in_child(act: object) -> int:
    """Fork a process that does `act` and then waits to be killed; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            act()  # type: ignore[operator]
        except BaseException:
            os._exit(1)
        signal.pause()
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("delay", [0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.09, 0.12, 0.2])
def test_a_maker_killed_at_any_moment_leaves_nothing_after_remove(lab: LabId, delay: float) -> None:
    maker = in_child(lambda: create(lab))
    time.sleep(delay)
    kill(maker)
    with held_namespaces(members(lab)) as made:
        EmbeddedRuntime().remove(lab)
        assert marked(lab) == []
        assert eventually(lambda: made & namespaces(every_pid()) == set())
    assert lab.name not in find_labs()


@pytest.mark.parametrize("delay", [0.001, 0.005, 0.01, 0.02, 0.04])
def test_a_remover_killed_at_any_moment_can_be_followed_by_another(lab: LabId, delay: float) -> None:
    create(lab)
    remover = in_child(lambda: EmbeddedRuntime().remove(lab))
    time.sleep(delay)
    kill(remover)
    EmbeddedRuntime().remove(lab)
    assert marked(lab) == []


def test_a_lab_outlives_its_maker(lab: LabId) -> None:
    read, write = os.pipe()
    maker = in_child(lambda: (create(lab), os.write(write, b"x")))
    assert os.read(read, 1) == b"x"
    kill(maker)
    assert EmbeddedRuntime().start(lab, "n-0", Command(("true",))).wait(10) == 0
    assert lab.name in find_labs()


def test_made_and_removed_again_and_again_leaks_nothing(lab: LabId) -> None:
    create(lab, 2)
    EmbeddedRuntime().remove(lab)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        create(lab, 2)
        assert EmbeddedRuntime().start(lab, "n-1", Command(("true",))).wait(10) == 0
        EmbeddedRuntime().remove(lab)
    assert len(os.listdir("/proc/self/fd")) == before
    assert marked(lab) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_strangers_are_left_alone(lab: LabId) -> None:
    neighbour = LabId.of(lab.name + "x")
    foreign = Path("/sys/fs/cgroup") / cgroups.detect().mark.name / f"emu-stranger-{os.getpid()}"
    if not foreign.parent.is_dir():
        foreign = cgroups.detect().mark / foreign.name
    foreign.mkdir()
    stranger = subprocess.Popen(["unshare", "-n", "sleep", "60"], env={**os.environ, "EMU_LAB": lab.name})
    try:
        (foreign / "cgroup.procs").write_text(str(stranger.pid))
        create(neighbour, 1)
        create(lab)
        EmbeddedRuntime().remove(lab)
        assert stranger.poll() is None and foreign.is_dir()
        assert EmbeddedRuntime().start(neighbour, "n-0", Command(("true",))).wait(10) == 0
    finally:
        stranger.kill()
        stranger.wait()
        EmbeddedRuntime().remove(neighbour)
        cgroups.remove_group(foreign)


def test_a_cap_that_is_refused_leaves_nothing(lab: LabId) -> None:
    nodes = (machine("good"), machine("bad", host_cpus=Share(0.0001)))
    with pytest.raises(HostError, match=r"cannot be given 0.0001 host cores"):
        EmbeddedRuntime().create(lab, Plan(lab.name, nodes, ()), nodes, no_journal)
    assert marked(lab) == []


def test_a_node_that_cannot_be_made_is_named_and_leaves_nothing(lab: LabId, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("emulator.runtimes.embedded.rootfs._guard", refuse)
    with pytest.raises(HostError, match=r"n-[0-3]: the disk is full; free space"):
        create(lab)
    assert marked(lab) == []


def test_a_bug_in_a_nodes_first_process_is_not_hidden(lab: LabId, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_it(*_arguments: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("emulator.runtimes.embedded.rootfs._guard", break_it)
    with pytest.raises(RuntimeFailure, match="ZeroDivisionError: a bug of ours"):
        create(lab)
    assert marked(lab) == []


def test_files_on_disk_are_removed_too(lab: LabId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_NODE_DIR", str(tmp_path / "disk"))
    create(lab, 1)
    assert (tmp_path / "disk" / lab.name).is_dir()
    monkeypatch.delenv("EMU_NODE_DIR")
    process = EmbeddedRuntime().start(lab, "n-0", Command(("sh", "-c", "echo x > /etc/x && rm /etc/hosts")))
    assert process.wait(10) == 0
    EmbeddedRuntime().remove(lab)
    assert not (tmp_path / "disk" / lab.name).exists()
    assert marked(lab) == []


def test_a_path_that_overlayfs_cannot_take_is_refused(
    lab: LabId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_NODE_DIR", str(tmp_path / "a:b"))
    with pytest.raises(HostError, match=r"a:b/.*: a comma, colon or backslash in this path"):
        create(lab, 1)
    assert marked(lab) == [] and not (tmp_path / "a:b").exists()


def test_a_damaged_state_file_does_not_stop_removal(lab: LabId) -> None:
    create(lab, 1)
    (lab.directory / "nodes.json").write_text("{")
    with pytest.raises(RuntimeFailure, match="the lab's state cannot be read"):
        EmbeddedRuntime().enter(lab, "n-0")
    EmbeddedRuntime().remove(lab)
    assert marked(lab) == []


def test_a_program_that_forks_while_it_is_killed_goes_too(lab: LabId) -> None:
    EmbeddedRuntime().create(lab, plan := plan_of(lab.name), plan.nodes, no_journal)
    script = "while :; do sleep 5 & done"
    EmbeddedRuntime().start(lab, "alpha", Command(("sh", "-c", script)))
    time.sleep(0.3)
    EmbeddedRuntime().remove(lab)
    assert marked(lab) == []
