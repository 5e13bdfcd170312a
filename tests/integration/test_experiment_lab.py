"""Experiments in a real lab: its own, a running one, one beside it; and nothing of it left, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from emulator.core.lab_id import LabId
from emulator.experiment import ExperimentResult, run_experiment
from emulator.experiment.progress import Silent
from emulator.lab import Lab
from emulator.results.listing import listing
from tests.integration.commands import EMU, rest, training
from tests.unit.experiment.files import TOPOLOGY, changed, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "tun", "overlay")


class Notes(Silent):
    """Keeps what a user would be told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def files(directory: Path, name: str) -> Path:
    """An experiment of about two real seconds a variant on a lab called `name`."""
    text = changed("budget: 1 s\nevaluate_every: 0.1 s", "budget: 2 s\nevaluate_every: 0.5 s")
    return write(directory, text, TOPOLOGY.replace("name: trio", f"name: {name}"))


def run(directory: Path, name: str, **changes: Any) -> tuple[ExperimentResult, list[str]]:
    watcher = Notes()
    # A machine that is busy with something else must not stop a test of what is left behind.
    result = run_experiment(files(directory, name), watcher=watcher, out=directory / "runs", force=True, **changes)
    return result, watcher.said


def is_up(name: str) -> bool:
    return LabId.of(name).directory.exists()


def test_a_lab_of_its_own_is_measured_and_removed(tmp_path: Path) -> None:
    result, said = run(tmp_path, "exp-own")
    assert not is_up("exp-own-small")
    assert any(text.startswith("lab exp-own-small: 3 nodes by embedded, links by ") for text in said)
    assert any("expected use" in text for text in said)
    honesty = result.summary["honesty"]
    assert (honesty["engine"], honesty["runtime"]) == ("emulation", "embedded")
    assert honesty["host_busy"]["mean"] > 0
    assert set(honesty["throttling"]) == {"server", "worker-1", "worker-2"}
    assert honesty["drops"]["unasked"] == 0
    assert any("framework pages are shared" in note for note in honesty["notes"])
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
