"""Programs in nodes of the embedded runtime: a node's own command, forked functions, a terminal."""

from __future__ import annotations

import itertools
import os
import pty
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.enter import fork_into
from emulator.core.errors import RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.runtimes.base import Command, log_path
from tests.runtime_world import World, eventually, make_runtime, plan_of

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    name = f"prc-{os.getpid()}-{next(_numbers)}"
    world = World(make_runtime("embedded"), LabId.of(name), plan_of(name))
    yield world
    world.runtime.remove(world.lab)


@pytest.fixture
def world(bare: World) -> World:
    bare.create()
    return bare


def with_command(world: World, script: str, restart: str = "no") -> Path:
    world.plan = plan_of(world.lab.name, command=("sh", "-c", script), restart=restart)
    world.create()
    world.runtime.start_commands(world.lab, world.plan)
    return log_path(world.lab, "alpha")


def test_a_command_that_fails_is_started_again_and_its_ends_are_logged(bare: World) -> None:
    log = with_command(bare, "echo try; exit 3", restart="on-failure")
    assert eventually(lambda: log.read_text().count("try\n") >= 3)
    assert "emu: sh ended with exit status 3, starting it again\n" in log.read_text()


def test_a_command_that_succeeds_is_not_started_again_on_failure_only(bare: World) -> None:
    log = with_command(bare, "echo $EMU_NODE done", restart="on-failure")
    assert eventually(lambda: "ended with exit status 0\n" in log.read_text())
    assert log.read_text() == "alpha done\nemu: sh ended with exit status 0\n"


def test_a_killed_command_comes_back_where_always_is_set(bare: World) -> None:
    log = with_command(bare, "echo pid $$; kill -9 $$", restart="always")
    assert eventually(lambda: log.read_text().count("pid") >= 2)
    assert "ended with signal 9, starting it again" in log.read_text()


def test_a_command_that_is_not_there_says_so_in_the_log(bare: World) -> None:
    bare.plan = plan_of(bare.lab.name, command=("no-such-program",))
    bare.create()
    bare.runtime.start_commands(bare.lab, bare.plan)
    log = log_path(bare.lab, "alpha")
    assert eventually(lambda: "emu: no-such-program cannot be started (No such file or directory)" in log.read_text())


def test_the_log_is_bounded_and_keeps_the_newest(bare: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.runtimes.embedded.init.LOG_KEPT", 1 << 18)
    log = with_command(bare, "i=0; while [ $i -lt 40000 ]; do echo a line of some length, number $i; i=$((i+1)); done")
    assert eventually(lambda: "ended with exit status 0" in log.read_text()[-200:], 60)
    text = log.read_text()
    assert len(text) <= (1 << 19) + (1 << 17)
    assert text.startswith("emu: older lines were cut off\n") and "number 39999\n" in text


def test_a_command_does_not_hold_up_its_node(bare: World) -> None:
    with_command(bare, "trap '' TERM; sleep 60")
    assert bare.run("alpha", ["hostname"]) == (0, "alpha\n")
    bare.runtime.signal_init(bare.lab, "alpha", signal.SIGTERM)
    assert eventually(lambda: not bare.runtime.usage(bare.lab, ["alpha"])["alpha"].running)


def test_a_function_runs_in_the_node_without_exec(world: World) -> None:
    read, write = os.pipe()

    def inside() -> int:
        facts = (os.uname().nodename, os.getpid() < 100, os.environ["EMU_NODE"], os.listdir("/root/.ssh-none-such")
                 if Path("/root/.ssh-none-such").exists() else "", threading.active_count())  # fmt: skip
        os.write(write, repr(facts).encode())
        return 7

    process = fork_into(world.runtime.enter(world.lab, "alpha"), inside, keep=(write,))
    os.close(write)
    assert process.wait(20) == 7
    with os.fdopen(read) as stream:
        assert stream.read() == repr(("alpha", True, "alpha", "", 1))


def test_a_forked_function_is_charged_to_the_node_and_holds_its_privileges(world: World) -> None:
    read, write = os.pipe()

    def inside() -> int:
        status = dict(
            line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
        )
        os.write(
            write,
            (status["CapEff"].strip() + status["NoNewPrivs"].strip() + Path("/proc/self/cgroup").read_text()).encode(),
        )
        return 0

    process = fork_into(world.runtime.enter(world.lab, "beta"), inside, keep=(write,))
    os.close(write)
    assert process.wait(20) == 0
    with os.fdopen(read) as stream:
        text = stream.read()
    assert text.startswith("00000000a80425fb1")
    assert f"emu/{world.lab.name}/beta" in text


def test_an_exception_in_a_forked_function_is_shown_and_ends_it_with_1(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    def inside() -> int:
        raise KeyError("a bug of the role")

    assert fork_into(world.runtime.enter(world.lab, "alpha"), inside).wait(20) == 1
    assert "KeyError: 'a bug of the role'" in capfd.readouterr().err


def test_signals_reach_a_forked_function_under_its_host_pid(world: World) -> None:
    process = fork_into(world.runtime.enter(world.lab, "alpha"), lambda: signal.pause())  # type: ignore[func-returns-value]
    assert Path(f"/proc/{process.pid}/comm").exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM


def test_a_token_of_a_node_that_was_removed_enters_nothing(world: World) -> None:
    token = world.runtime.enter(world.lab, "alpha")
    world.runtime.remove(world.lab)
    with pytest.raises(RuntimeFailure, match="alpha: the node is gone"):
        fork_into(token, lambda: 0)
    assert os.readlink("/proc/self/ns/pid") == os.readlink("/proc/self/ns/pid_for_children")


def test_entering_from_a_thread_leaves_the_other_threads_where_they_are(world: World) -> None:
    token = world.runtime.enter(world.lab, "alpha")
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(fork_into(token, lambda: 5).wait(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [5] * 4
    assert os.readlink("/proc/self/ns/pid") == os.readlink("/proc/self/ns/pid_for_children")


def test_a_directory_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(RuntimeFailure, match="the directory '/no/such' cannot be entered"):
        world.runtime.start(world.lab, "alpha", Command(("true",), cwd="/no/such"))
    assert world.run("alpha", ["pwd"], cwd="/etc") == (0, "/etc\n")


def test_streams_of_any_number_are_connected(world: World, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as out:
        read, write = os.pipe()
        process = world.runtime.start(
            world.lab, "alpha", Command(("cat",), stdin=read, stdout=out.fileno(), stderr=out.fileno())
        )
        os.close(read)
        os.write(write, b"through a pipe")
        os.close(write)
        assert process.wait(20) == 0
        assert (tmp_path / "out").read_text() == "through a pipe"


def test_a_program_gets_a_terminal_of_its_own(world: World) -> None:
    pid, master = pty.fork()
    if pid == 0:
        code = "stty size; tty -s && echo is a terminal; read line; echo got $line; ps -o tty= -p $$ | tr -d ' '"
        command = Command(("sh", "-c", code), stdin=0, stdout=1, stderr=2, tty=True)
        os._exit(world.runtime.start(world.lab, "alpha", command).wait() & 0xFF)
    text = b""
    sent = False
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:
            break
        text += chunk
        if b"is a terminal" in text and not sent:
            sent = bool(os.write(master, b"hello\r"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert b"got hello" in text
    os.close(master)


def test_the_interpreter_of_the_controller_runs_in_the_node(world: World) -> None:
    status, text = world.run("beta", ["python3", "-c", "import sys, numpy; print(sys.prefix)"])
    assert (status, text.strip()) == (0, sys.prefix)
