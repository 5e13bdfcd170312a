"""Experiments in a real lab: its own, a running one, one beside it; and nothing of it left, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from emulator.core.errors import TrainingError
from emulator.core.lab_id import LabId
from emulator.core.processor import host_arch
from emulator.experiment import ExperimentResult, run_experiment
from emulator.experiment.progress import Silent
from emulator.lab import Lab
from emulator.results.listing import listing
from emulator.runtimes.docker import engine
from emulator.runtimes.docker.image import PLAIN
from tests.integration.commands import EMU, rest, training
from tests.unit.experiment.files import TOPOLOGY, changed, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "tun", "overlay")


DOCKER = pytest.param("docker", marks=pytest.mark.needs("docker"))


class Notes(Silent):
    """Keeps what a user would be told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


class Killer(Notes):
    """Kills a container as soon as a worker has been heard of."""

    def __init__(self, container: str) -> None:
        super().__init__()
        self._container = container

    def record(self, item: dict[str, Any]) -> None:
        if self._container and item["kind"] == "update":
            engine.client().kill(self._container)
            self._container = ""


def files(directory: Path, name: str, image: str = "") -> Path:
    """An experiment of about two real seconds a variant on a lab called `name`."""
    text = changed("budget: 1 s\nevaluate_every: 0.1 s", "budget: 2 s\nevaluate_every: 0.5 s")
    topology = TOPOLOGY.replace("name: trio", f"name: {name}")
    if image:
        topology = topology.replace("role:", f"image: '{image}', role:")
    return write(directory, text, topology)


def run(directory: Path, name: str, watcher: Notes | None = None, **changes: Any) -> tuple[ExperimentResult, list[str]]:
    watcher = watcher or Notes()
    # A machine that is busy with something else must not stop a test of what is left behind.
    image = f"{PLAIN}:{host_arch()}" if changes.get("runtime") == "docker" else ""
    path = files(directory, name, image)
    if isinstance(watcher, Killer):  # one variant: with a dead node there is no second
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: text.index("  adacomp:")] + text[text.index("budget:") :], encoding="utf-8")
    result = run_experiment(path, watcher=watcher, out=directory / "runs", force=True, **changes)
    return result, watcher.said


def is_up(name: str) -> bool:
    return LabId.of(name).directory.exists()


@pytest.mark.parametrize("runtime", ["embedded", DOCKER])
def test_a_lab_of_its_own_is_measured_and_removed(tmp_path: Path, runtime: str) -> None:
    result, said = run(tmp_path, "exp-own", runtime=runtime, overrides={"save_parameters": True})
    for name in result.variants:
        with np.load(result.directory / name / "0" / "parameters.npz") as file:
            assert {key: file[key].shape for key in file} == {"weight": (784, 10), "bias": (10,)}
    assert not is_up("exp-own-small")
    assert any(text.startswith(f"lab exp-own-small: 3 nodes by {runtime}, links by ") for text in said)
    assert any("expected use" in text for text in said)
    honesty = result.summary["honesty"]
    assert (honesty["engine"], honesty["runtime"]) == ("emulation", runtime)
    assert honesty["host_busy"]["mean"] > 0
    assert set(honesty["throttling"]) == {"server", "worker-1", "worker-2"}
    assert honesty["drops"]["unasked"] == 0
    shared = any("framework pages are shared" in note for note in honesty["notes"])
    assert shared == (runtime == "embedded"), "containers import the framework each for itself"
    for variant in result.variants.values():
        assert variant.updates > 0
        assert variant.emulated_seconds == pytest.approx(2.0, abs=1.0)
    server, *workers = result.summary["variants"]["asgd"]["repeats"][0]["nodes"]
    assert server["measured"]
    pushed = result.variants["asgd"].message_bytes_to_server
    assert server["received_bytes"] > pushed, "interfaces count the headers too"
    assert sum(worker["sent_bytes"] for worker in workers) == pytest.approx(server["received_bytes"], rel=0.05)


def test_a_running_lab_that_fits_is_used_and_left_up(tmp_path: Path) -> None:
    files(tmp_path, "exp-used")
    with Lab.from_file(tmp_path / "trio.yaml", seed=3):
        _, said = run(tmp_path, "exp-used")
        assert "using lab exp-used, which is up already" in said
        assert is_up("exp-used")
    assert not is_up("exp-used")


def test_a_running_lab_with_another_time_scale_is_left_alone(tmp_path: Path) -> None:
    files(tmp_path, "exp-beside")
    with Lab.from_file(tmp_path / "trio.yaml", time_scale=2.0) as lab:
        before = lab.state
        result, said = run(tmp_path, "exp-beside")
        assert said.count(
            "lab exp-beside is up with another time scale (2, not 1); making lab exp-beside-small beside it, "
            "removed at the end"
        ) == 1  # fmt: skip
        assert lab.state == before
        assert not is_up("exp-beside-small")
    assert result.summary["topology"] == "trio"


@pytest.mark.needs("docker")
def test_a_workers_container_that_is_killed_is_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    watcher = Killer("emu-exp-worker-small-worker-1")
    # Its node is silent from then on, which the server knows for an end after 60 emulated seconds.
    result, _ = run(tmp_path, "exp-worker", watcher, runtime="docker", time_scale=0.1, overrides={"budget": "20 s"})
    (repeat,) = result.summary["variants"]["asgd"]["repeats"]
    assert repeat["died"] == ["worker-1"] and result.variants["asgd"].updates > 1
    assert not is_up("exp-worker-small")


@pytest.mark.needs("docker")
def test_a_servers_container_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"server: the process ended by SIGKILL"):
        run(tmp_path, "exp-server", Killer("emu-exp-server-small-server"), runtime="docker")
    assert not is_up("exp-server-small")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_report_and_no_lab(tmp_path: Path, number: int) -> None:
    path = files(tmp_path, "exp-cut")
    process = training(["experiment", str(path), "--set", "budget=10 min", "--force"], tmp_path)
    process.send_signal(number)
    said = rest(process)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not is_up("exp-cut-small")
    (entry,) = listing(tmp_path / "runs")
    assert entry["state"] == "interrupted"


def test_after_kill_9_down_removes_everything(tmp_path: Path) -> None:
    path = files(tmp_path, "exp-killed")
    process = training(["experiment", str(path), "--set", "budget=10 min", "--force"], tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    rest(process)
    done = subprocess.run([*EMU, "down", "exp-killed-small"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not is_up("exp-killed-small")
    marked = subprocess.run(["pgrep", "-fc", "exp-killed"], capture_output=True, text=True, check=False)
    assert marked.stdout.strip() == "0", "a process of the lab is still there"
    (entry,) = listing(tmp_path / "runs")
    assert entry["state"] == "interrupted"
