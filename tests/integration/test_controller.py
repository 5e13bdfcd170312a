"""emu in a container that drives the engine outside, started by the line that docs/containers.md gives."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.core.lab_id import LabId
from emulator.core.processor import host_arch
from emulator.core.shipped import PACKAGE
from emulator.images import build, context
from emulator.images.builder import Order
from emulator.images.builder import build as run_builder
from emulator.runtimes.docker import container, controller, engine

LAB = f"ctl-{os.getpid()}"
NAME = f"emu-{LAB}"
IMAGE = f"emu-test/controller:{os.getpid()}"
TOPOLOGY = (
    "nodes: {a: {device: rpi-4}, b: {device: rpi-4}, r: {kind: router}}\nlinks: [{from: a, to: r}, {from: r, to: b}]\n"
)


def described(**changes: Any) -> controller.Controller:
    found = {
        "Name": "/emu",
        "HostConfig": {"PidMode": "host", "CgroupnsMode": "host"},
        "AppArmorProfile": "",
        "Mounts": [
            {"Destination": "/sys/fs/cgroup", "Source": "/sys/fs/cgroup", "RW": True},
            {"Destination": "/work", "Source": "/home/ann", "RW": True},
            {"Destination": "/work/data", "Source": "/volumes/data/_data", "RW": True},
        ],
    }
    return controller.Controller(found | changes)


def test_a_file_of_the_controller_is_named_as_the_engines_host_has_it() -> None:
    ours = described()
    assert ours.host_path(Path("/work/runs")) == Path("/home/ann/runs")
    assert ours.host_path(Path("/work/data/mnist")) == Path("/volumes/data/_data/mnist")
    assert ours.host_path(Path("/emu")) is None
    assert ours.host_path(Path("/workshop")) is None


def test_what_the_controllers_container_lacks_is_named_by_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "_capabilities", lambda: {"NET_ADMIN", "SYS_ADMIN", "SYS_NICE"})
    monkeypatch.setattr(os, "access", lambda _path, _mode: True)
    assert described().missing() == []
    bare = described(HostConfig={"PidMode": "", "CgroupnsMode": "private"}, AppArmorProfile="docker-default", Mounts=[])
    monkeypatch.setattr(controller, "_capabilities", lambda: {"NET_ADMIN"})
    assert bare.missing() == [
        "--pid=host", "--cgroupns=host", "--cap-add SYS_ADMIN", "--cap-add SYS_NICE",
        "-v /sys/fs/cgroup:/sys/fs/cgroup", "--security-opt apparmor=unconfined",
    ]  # fmt: skip


def test_emu_on_the_host_is_no_controller() -> None:
    assert controller.problem() is None


def documented() -> list[str]:
    """The words of the documented line."""
    text = (PACKAGE.parent / "docs" / "containers.md").read_text()
    found = re.search(r"^docker run -d .*?[^\\]$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return shlex.split(found[0].replace("\\\n", " "))


def start(state: Path, *, without: str = "") -> Callable[..., subprocess.CompletedProcess[str]]:
    """Start the controller as documented, with what this test owns in the places of the user's; returns `emu`."""
    socket = engine.address().removeprefix("unix://")
    places = {
        "emu": NAME,
        "/var/run/docker.sock:/var/run/docker.sock": f"{socket}:/var/run/docker.sock",
        "/run/emu:/run/emu": f"{state}:/run/emu",
        "emu-cache:/root/.cache/emu": f"{state.parent / 'cache'}:/root/.cache/emu",
        "$PWD:/work": f"{state.parent / 'work'}:/work",
        "emu/emu:amd64": IMAGE,
    }
    words = [places.get(word, word) for word in documented() if word != without]
    assert {*places.values()} <= {*words}
    code = ["-v", f"{PACKAGE}:/opt/emu/site/emulator:ro"]  # this checkout's, whenever the images were built
    subprocess.run([*words[:2], *code, *words[2:]], check=True, capture_output=True)

    def emu(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["docker", "exec", "-w", "/work", NAME, "emu", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    return emu


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Where the labs' state lies on the host; the controller's image is there meanwhile."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "two.yaml").write_text(TOPOLOGY)
    client = engine.client()
    with tempfile.TemporaryFile() as file:
        context.pack(file, build._parts("emu", host_arch(), print))
        file.seek(0)
        # On base instead of torch: what trains runs in other images, and the evaluator is not needed here.
        run_builder(client, Order(IMAGE, host_arch(), {"BASE": f"emu/base:{host_arch()}"}), file)
    yield tmp_path / "state"
    subprocess.run(["docker", "rm", "--force", NAME], check=False, capture_output=True)
    for made in container.of_lab(LabId(LAB, tmp_path)):
        client.remove_container(made["Id"], force=True)
    client.remove_image(IMAGE)


@pytest.mark.needs("root", "netns", "tun", "cgroup", "docker")
def test_a_lab_is_made_used_and_removed_from_a_container_also_by_another_one(state: Path) -> None:
    emu = start(state)
    checks = {check["name"]: check for check in json.loads(emu("doctor", "--json").stdout)}
    assert checks["controller"]["state"] == "ok", checks["controller"]
    up = emu("up", "two.yaml", "--name", LAB)
    assert "runtime docker" in up.stdout, up.stderr
    assert emu("exec", "--lab", LAB, "a", "--", "hostname").stdout == "a\n"
    assert emu("exec", "--lab", LAB, "a", "--", "ping", "-c", "1", "b").returncode == 0
    assert "two.yaml" in emu("exec", "--lab", LAB, "a", "--", "ls", "/work").stdout, "the user's files are not shown"
    assert json.loads(emu("status", LAB, "--json").stdout)
    assert "out of memory" in emu("stats", LAB).stdout
    subprocess.run(["docker", "rm", "--force", NAME], check=True, capture_output=True)  # its relay and routers go too
    emu = start(state)
    assert "DEAD" in emu("status", LAB).stdout
    assert emu("down", LAB).returncode == 0
    assert container.of_lab(LabId(LAB, state)) == []
    assert not [path for path in Path("/sys/fs/cgroup").glob("*/emu/*") if path.name == LAB]
    assert list(state.iterdir()) == []


@pytest.mark.needs("root", "netns", "tun", "cgroup", "docker")
def test_a_controller_without_an_option_names_it(state: Path) -> None:
    emu = start(state, without="--pid=host")
    refused = emu("up", "two.yaml", "--name", LAB)
    assert refused.returncode == 20
    assert "emu's own container lacks --pid=host; start it anew with that" in refused.stderr
