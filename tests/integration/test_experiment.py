"""Whole experiments on the virtual clock: from file to report, the same for a seed, and whole when cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from emulator.core.errors import ExperimentError, ResultError, TrainingError, UsageError
from emulator.experiment import ExperimentResult, run_experiment
from emulator.experiment.progress import Silent
from emulator.results import store
from emulator.results.listing import listing
from emulator.results.report import rebuild
from tests.integration.commands import EMU, rest, training
from tests.unit.experiment.files import TOPOLOGY, write

if TYPE_CHECKING:
    from pathlib import Path


def run(directory: Path, **changes: Any) -> ExperimentResult:
    directory.mkdir(exist_ok=True)
    return run_experiment(write(directory), runtime="fake", out=directory / "runs", **changes)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    return run(tmp_path_factory.mktemp("whole"))


def test_a_run_leaves_everything(result: ExperimentResult) -> None:
    names = {path.name for path in result.directory.iterdir()}
    assert names == {
        "run.json", "plan.json", "experiment.json", "summary.json", "report.html", "asgd", "adacomp"
    }  # fmt: skip
    records = {path.name for path in (result.directory / "adacomp" / "0").iterdir()}
    assert {"server.jsonl", "worker-1.jsonl", "worker-2.jsonl", "evaluator.jsonl"} <= records
    assert json.loads((result.directory / "summary.json").read_text()) == result.summary


def test_the_figures_add_up(result: ExperimentResult) -> None:
    asgd, adacomp = result.variants["asgd"], result.variants["adacomp"]
    assert asgd.payload_bytes_per_update == 7850 * 4, "softmax has 7,850 parameters of 4 bytes"
    assert adacomp.payload_bytes_per_update == (78 + 1) * 8, "1 % of 7,840, and at least one of 10, at 8 bytes each"
    assert adacomp.payload_reduction == pytest.approx(31400 / 632)
    for one in (asgd, adacomp):
        assert one.state == "ok"
        assert one.payload_bytes_to_server == one.updates * (one.payload_bytes_per_update or 0)
        assert one.message_bytes_to_server > one.payload_bytes_to_server
        assert one.emulated_seconds == pytest.approx(1.0, abs=0.1)
    honesty = result.summary["honesty"]
    assert (honesty["engine"], honesty["runtime"], honesty["seed"]) == ("virtual clock", "fake", 3)
    assert honesty["marks"] == []
    assert result.marks == []


def test_the_same_seed_gives_the_same_figures(result: ExperimentResult, tmp_path: Path) -> None:
    again = run(tmp_path)
    assert again.summary["variants"] == result.summary["variants"]
    assert again.summary["findings"] == result.summary["findings"]
    other = run(tmp_path, seed=4)
    assert other.summary["variants"] != result.summary["variants"]


def test_what_was_trained_is_kept_where_asked_for(result: ExperimentResult, tmp_path: Path) -> None:
    assert not list(result.directory.rglob("*.npz"))
    kept = run(tmp_path, overrides={"save_parameters": True})
    assert kept.summary["variants"] == result.summary["variants"]
    for name in kept.variants:
        with np.load(kept.directory / name / "0" / "parameters.npz") as file:
            found = {key: (file[key].shape, file[key].dtype) for key in file}
            assert found == {"weight": ((784, 10), np.float32), "bias": ((10,), np.float32)}
            assert np.abs(file["weight"]).max() > 0, "the last state, not the first"


def test_repeats_use_following_seeds(result: ExperimentResult, tmp_path: Path) -> None:
    two = run(tmp_path, repeats=2).summary["variants"]["asgd"]
    first = result.summary["variants"]["asgd"]["repeats"][0]
    assert two["repeats"][0] == first, "the first repeat is the run without repeats"
    assert two["repeats"][1]["seed"] == 4
    assert two["spread"]["final_accuracy"] is not None


def test_report_makes_the_same_summary_from_the_records(result: ExperimentResult) -> None:
    found = store.Run(result.directory)
    (result.directory / "summary.json").unlink()
    assert rebuild(found) == result.summary


def test_a_topology_without_a_server(tmp_path: Path) -> None:
    path = write(tmp_path, topology=TOPOLOGY.replace(", role: parameter_server", ""))
    with pytest.raises(ExperimentError, match=r"trio.yaml: an experiment needs one server, and no node has that role"):
        run_experiment(path, runtime="fake", out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists(), "nothing is made for an experiment that cannot run"


def test_a_topology_without_workers(tmp_path: Path) -> None:
    path = write(tmp_path, topology=TOPOLOGY.replace(", role: worker", ""))
    with pytest.raises(ExperimentError, match=r"no node is a worker; give at least one node `role: worker`"):
        run_experiment(path, runtime="fake", out=tmp_path / "runs")


def test_a_link_driver_needs_a_lab(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="link driver 'relay' needs a lab; leave out --runtime fake"):
        run(tmp_path, link_driver="relay")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match=r"cannot write results \(.*\); choose another place with --out"):
        run_experiment(write(tmp_path), runtime="fake", out=tmp_path / "file")


class Interrupts(Silent):
    """Presses Ctrl-C during the second variant."""

    def __init__(self) -> None:
        self.variant, self.updates = "", 0

    def begin(self, variant: str, repeat: int, budget: float) -> None:
        self.variant = variant

    def record(self, item: dict[str, Any]) -> None:
        self.updates += self.variant == "adacomp" and item["kind"] == "update"
        if self.updates == 5:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, watcher=Interrupts())
    (found,) = store.runs(tmp_path / "runs")
    assert found.state() == "interrupted"
    variants = found.read("summary.json")["variants"]
    assert variants["asgd"]["state"] == "ok"
    assert (variants["adacomp"]["state"], variants["adacomp"]["updates"]) == ("incomplete", 5)
    assert "This run was interrupted." in (found.directory / "report.html").read_text(encoding="utf-8")


class Fails(Silent):
    """Stands for a training that goes wrong."""

    def record(self, item: dict[str, Any]) -> None:
        if item["kind"] == "evaluation" and item["updates"]:
            raise TrainingError("it broke", where="worker-1", fix="mend it")


def test_a_failed_run_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="worker-1: it broke; mend it"):
        run(tmp_path, watcher=Fails())
    (entry,) = listing(tmp_path / "runs")
    assert entry["state"] == "failed"
    assert list(entry["final_accuracy"]) == ["asgd"]


def emu(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*EMU, *arguments], cwd=directory, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line_from_experiment_to_report(tmp_path: Path) -> None:
    path = str(write(tmp_path))
    ran = emu(tmp_path, "experiment", path, "--runtime", "fake", "--set", "budget=0.5 s", "--json")
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert summary["budget"] == 0.5
    assert "virtual clock" in ran.stderr, "it says on what it runs"
    listed = json.loads(emu(tmp_path, "runs", "--json").stdout)
    assert [(item["name"], item["state"]) for item in listed] == [("small", "finished")]
    table = emu(tmp_path, "report", "latest")
    assert table.returncode == 0
    for text in ("asgd", "adacomp", "49.7×", "runtime fake"):
        assert text in table.stdout
    assert table.stderr.strip().endswith("report.html")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("experiment",), 2, "emu: no experiment is named; "),
        (("experiment", "adacomp-minst"), 11, "did you mean 'adacomp-mnist'?"),
        (("experiment", "small.yaml", "--set", "budgt=3 s"), 11, "did you mean 'budget'?"),
        (("experiment", "small.yaml", "--runtime", "embeded"), 2, "'embeded' is not a runtime"),
        (("report", "latest"), 32, "there are no runs in runs/"),
    ],
)
def test_mistakes_are_one_sentence_with_their_exit_code(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    write(tmp_path)
    done = emu(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_kill_are_exit_130_and_the_run_is_kept(tmp_path: Path, number: int) -> None:
    write(tmp_path)
    process = training(["experiment", "small.yaml", "--runtime", "fake", "--set", "budget=10 min"], tmp_path)
    process.send_signal(number)
    said = rest(process)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "emu: interrupted; what was recorded until then is in runs/" in said
    (entry,) = listing(tmp_path / "runs")
    assert entry["state"] == "interrupted"
    assert entry["final_accuracy"]["asgd"] is not None


def test_a_killed_run_can_be_reported(tmp_path: Path) -> None:
    write(tmp_path)
    process = training(["experiment", "small.yaml", "--runtime", "fake", "--set", "budget=10 min"], tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    rest(process)
    (found,) = store.runs(tmp_path / "runs")
    assert found.state() == "interrupted"
    assert rebuild(found)["variants"]["asgd"]["updates"] > 0
