"""What goes wrong with an engine during a lab: told in one sentence with the container's last words, and cleaned."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.lab import Lab
from emulator.lab.remove import remove
from emulator.lab.status import report
from emulator.runtimes import state
from emulator.runtimes.docker import image
from tests.integration.private_engine import BARE, TINY, PrivateEngine
from tests.integration.traces import EMU, emu, marked
from tests.runtime_world import eventually

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay", "dockerd", "busybox")
_numbers = itertools.count()
STAY = 'command: [sh, -c, "echo ready; exec sleep 1000"]'


@pytest.fixture(scope="module")
def daemon() -> Iterator[PrivateEngine]:
    with PrivateEngine() as made:
        yield made


@pytest.fixture
def engine(daemon: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> PrivateEngine:
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    monkeypatch.setenv("EMU_RUNTIME", "docker")
    return daemon


def topology(directory: Path, name: str, node: str = STAY, count: int = 2, tag: str = TINY) -> Path:
    """Nodes n-1, n-2, ... around a switch; `node` are further settings of each."""
    path = directory / f"{name}.yaml"
    path.write_text(
        f"name: {name}\n"
        "nodes:\n"
        f"  n: {{device: rpi-3b, memory: 64 MiB, count: {count}, image: '{tag}', {node}}}\n"
        "  hub: {kind: switch}\n"
        "links:\n"
        '  - {from: "*", to: hub, rate: 50 Mbit, delay: 1 ms}\n'
    )
    return path


@pytest.fixture
def name(engine: PrivateEngine) -> Iterator[str]:
    """The name of a lab, of which nothing may be left."""
    found = f"df-{os.getpid()}-{next(_numbers)}"
    yield found
    left = [*marked(LabId.of(found)), *engine.docker("ps", "-aq").split()]
    remove(LabId.of(found))
    assert left == []


@pytest.fixture
def lab(name: str, tmp_path: Path) -> Lab:
    Lab.from_file(topology(tmp_path, name)).up()
    found = Lab.attach(name)
    assert eventually(lambda: b"ready" in b"".join(found.runtime.log(found.id, "n-1")))
    return found


def node(lab: Lab, name: str) -> dict[str, Any]:
    return next(item for item in report(Lab.attach(lab.name))["nodes"] if item["node"] == name)


def refused(lab: Lab, name: str) -> str:
    """The sentence with which a node that is gone refuses a program."""
    with pytest.raises(RuntimeFailure) as caught:
        Lab.attach(lab.name).node(name).run(["true"])
    return str(caught.value)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (("kill",), "its container ended with exit status 137, SIGKILL (it said: ready)"),
        (("rm", "-f"), "its container has been removed"),
        (("restart", "-t", "0"), "its container was started anew, and has no cables"),
    ],
    ids=["killed", "removed", "restarted"],
)
def test_a_container_ended_by_another_hand(engine: PrivateEngine, lab: Lab, act: tuple[str, ...], why: str) -> None:
    engine.docker(*act, f"emu-{lab.name}-n-1")
    assert refused(lab, "n-1") == f"n-1: the node is gone: {why}; see `emu status` and `emu logs`"
    assert (node(lab, "n-1")["state"], node(lab, "n-1")["why"]) == ("dead", f"the node is gone: {why}")
    assert f"n-1: the node is gone: {why}" in " ".join(emu("status", lab.name).stdout.split())
    assert node(lab, "n-2")["state"] == "up" and lab.node("n-2").run(["hostname"]).stdout == "n-2\n"
    emu("down", lab.name)


def test_the_output_of_a_removed_container_went_with_it(engine: PrivateEngine, lab: Lab) -> None:
    engine.docker("rm", "-f", f"emu-{lab.name}-n-1")
    done = emu("logs", "--lab", lab.name, "n-1", check=False)
    assert (done.returncode, done.stdout) == (22, "")
    assert done.stderr.startswith("emu: n-1: its container has been removed, and its output with it; ")
    emu("down", "--lab", lab.name)


def test_a_program_that_succeeds_at_once_is_told(name: str, tmp_path: Path) -> None:
    done = emu("up", str(topology(tmp_path, name, 'command: [sh, -c, "echo all done"]')))
    for number in (1, 2):
        assert f"note: n-{number}: the node is gone: its container ended with exit status 0 (it said: all done)" in (
            done.stderr.splitlines()
        )
    emu("down", name)


def test_the_image_of_a_running_lab_is_removed(engine: PrivateEngine, lab: Lab) -> None:
    engine.docker("rmi", "-f", TINY)
    try:
        assert lab.node("n-1").run(["hostname"]).stdout == "n-1\n"
        assert {item["state"] for item in report(Lab.attach(lab.name))["nodes"]} == {"up"}
        emu("down", lab.name)
    finally:
        engine.load()


def test_the_image_is_removed_between_look_and_use(
    engine: PrivateEngine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = image.find

    def find_and_lose(*arguments: Any) -> Any:
        try:
            return found(*arguments)
        finally:
            engine.docker("rmi", "-f", TINY)

    monkeypatch.setattr(image, "find", find_and_lose)
    try:
        with pytest.raises(HostError, match=rf"n-[12]: image {TINY} was removed meanwhile; load or pull it again"):
            Lab.from_file(topology(tmp_path, name)).up()
    finally:
        engine.load()


@pytest.mark.parametrize(
    ("tag", "command", "said"),
    [
        (TINY, '[sh, -c, "echo no such model; exit 3"]', r"exit status 3 \(it said: no such model\)"),
        (TINY, "[no-such-program]", r"exit status 127 \(it said: .*no-such-program: not found\)"),
        (TINY, '[sh, -c, "kill -9 $$"]', "exit status 137, SIGKILL, and printed nothing"),
        (
            BARE,
            "[busybox, sleep, infinity]",
            r"exit status 127 \(it said: .* exec /bin/sh failed: No such file or directory\)",
        ),
    ],
    ids=["fails", "is-not-there", "is-killed", "no-shell"],
)
def test_a_container_that_ends_at_once(name: str, tmp_path: Path, tag: str, command: str, said: str) -> None:
    done = emu("up", str(topology(tmp_path, name, f"command: {command}", 2, tag)), check=False)
    assert done.returncode == 22 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert re.search(rf"emu: n-[12]: its container ended with {said}; mend its `image:` or `command:`", done.stderr)


def test_a_container_that_has_ended_before_its_links_are_made(
    engine: PrivateEngine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab.from_file(topology(tmp_path, name, "command: [busybox, sleep, infinity]", 2, BARE))
    plug = lab.links.plug

    def plug_later(*arguments: Any) -> None:
        engine.docker("wait", *engine.docker("ps", "-aq", "--filter", f"label=emu.lab={name}").split())
        plug(*arguments)

    monkeypatch.setattr(lab.links, "plug", plug_later)
    with pytest.raises(RuntimeFailure, match=r"its container ended with exit status 127 \(.*\); mend its `image:`"):
        lab.up()


def test_a_program_that_ends_well_is_no_fault(name: str, tmp_path: Path) -> None:
    Lab.from_file(topology(tmp_path, name, "command: [echo, done]", 1)).up()
    assert "exit status 0 (it said: done)" in refused(Lab.attach(name), "n-1")
    emu("down", name)


def test_a_node_without_a_program_stays_for_exec(engine: PrivateEngine, name: str, tmp_path: Path) -> None:
    engine.docker("create", "--name", name, TINY)
    engine.docker("commit", "--change", "CMD []", name, "idle:1")
    engine.docker("rm", name)
    with Lab.from_file(topology(tmp_path, name, "restart: always", 1, "idle:1"), runtime="docker") as lab:
        assert lab.node("n-1").run(["hostname"]).stdout == "n-1\n"
        assert emu("logs", "n-1", "--lab", name).stdout == ""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_the_engine_restarts_and_takes_its_containers_with_it(engine: PrivateEngine, lab: Lab, sig: int) -> None:
    engine.stop(sig)
    engine.start()
    assert "its container ended with exit status" in refused(lab, "n-1")
    assert {item["state"] for item in report(Lab.attach(lab.name))["nodes"]} == {"dead"}
    emu("down", lab.name)


def test_a_lab_outlives_its_engine(engine: PrivateEngine, lab: Lab) -> None:
    engine.stop(signal.SIGKILL)
    try:
        assert emu("exec", "-l", lab.name, "n-1", "--", "hostname").stdout == "n-1\n"
        assert {item["state"] for item in report(Lab.attach(lab.name))["nodes"]} == {"up"}
        logs = emu("logs", "-l", lab.name, "n-1", check=False)
        assert logs.returncode == 20 and "no Docker engine answers" in logs.stderr
    finally:
        engine.start("--live-restore")
    assert lab.node("n-2").run(["hostname"]).stdout == "n-2\n"
    assert b"ready" in b"".join(lab.runtime.log(lab.id, "n-1"))
    engine.stop()
    engine.start("--live-restore")
    assert {item["state"] for item in report(Lab.attach(lab.name))["nodes"]} == {"up"}
    emu("down", lab.name)


def test_down_while_the_engine_is_away_and_again_when_it_is_back(engine: PrivateEngine, lab: Lab) -> None:
    pids = [found.pid for found in state.read(lab.id).values() if found.pid]
    engine.stop(signal.SIGKILL)
    try:
        for _ in range(2):
            down = emu("down", lab.name, check=False)
            assert down.returncode == 20 and len(down.stderr.splitlines()) == 1
            assert f"the containers of lab {lab.name!r} could not be removed (no Docker engine answers" in down.stderr
            assert f"start the engine and run `emu down {lab.name}` again" in down.stderr
            assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert [line for line in marked(lab.id) if str(lab.id.directory) not in line] == []
        status = emu("status", lab.name, check=False)
        assert status.returncode == 21 and "is half made or half removed" in status.stderr
    finally:
        engine.start()
    assert len(engine.docker("ps", "-aq").split()) == 2
    emu("down", lab.name)


@pytest.mark.parametrize("there", [0, 6, 10])
def test_up_is_killed_when_so_many_containers_are_there(
    engine: PrivateEngine, name: str, tmp_path: Path, there: int
) -> None:
    path = topology(tmp_path, name, count=10)
    process = subprocess.Popen([EMU, "up", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert eventually(lambda: LabId.of(name).directory.exists() and len(engine.docker("ps", "-aq").split()) >= there)
    process.kill()
    process.wait()
    if there == 6:
        emu("up", str(path))
        assert len(engine.docker("ps", "-q").split()) == 10
    emu("down", name)
    assert not eventually(lambda: engine.docker("ps", "-aq"), 0.5), "the engine was still at it"
