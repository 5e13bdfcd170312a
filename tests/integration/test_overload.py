"""The overload monitor in a real lab, beside a real busy loop."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import DegradedError
from emulator.core.lab_id import LabId
from emulator.experiment import run_experiment
from emulator.lab import Lab
from emulator.lab.status import report
from emulator.results.listing import listing
from tests.integration.commands import EMU
from tests.unit.experiment.files import TOPOLOGY, changed, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "tun", "overlay")


@pytest.fixture
def loops() -> Iterator[list[int]]:
    """Two programs outside that compute without end: whoever else runs here, they are among the hungriest."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.wait()


def files(directory: Path, name: str, budget: str) -> Path:
    text = changed("budget: 1 s\nevaluate_every: 0.1 s", f"budget: {budget}\nevaluate_every: 0.5 s")
    return write(directory, text, TOPOLOGY.replace("name: trio", f"name: {name}"))


def test_a_run_beside_a_busy_loop_is_degraded_and_says_by_whom(tmp_path: Path, loops: list[int]) -> None:
    path = files(tmp_path, "over-run", "2 s")
    command = [*EMU, "experiment", str(path), "--force", "--runtime", "embedded", "--json"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 33, ran.stderr
    assert "degraded, the host could not carry it as planned" in ran.stderr
    (entry,) = listing(tmp_path / "runs")
    assert (entry["state"], entry["degraded"]) == ("finished", True)
    marks = [mark for mark in entry["marks"] if "programs outside the lab used" in mark]
    assert any(f"(pid {pid})" in mark for mark in marks for pid in loops), entry["marks"]
    assert "Degraded: the host could not carry this run" in next(tmp_path.glob("runs/*/*/report.html")).read_text()


def test_strict_stops_at_the_first_overload_and_leaves_a_report_and_no_lab(tmp_path: Path, loops: list[int]) -> None:
    path = files(tmp_path, "over-strict", "10 min")
    with pytest.raises(DegradedError, match=r"stopped at [\d.]+ s \(emulated\), since the host does not keep up"):
        run_experiment(path, out=tmp_path / "runs", force=True, runtime="embedded", strict=True)
    assert not LabId.of("over-strict-small").directory.exists()
    (entry,) = listing(tmp_path / "runs")
    assert (entry["state"], entry["degraded"]) == ("interrupted", True)


def test_the_status_of_a_lab_tells_who_takes_its_cpu(tmp_path: Path, loops: list[int]) -> None:
    files(tmp_path, "over-status", "1 s")
    with Lab.from_file(tmp_path / "trio.yaml", runtime="embedded") as lab:
        found = report(lab)["overloads"]
    assert any("programs outside the lab used" in what for what in found)
