"""Real HPL over MPI on two nodes: a result that is right, over the shaped links, and a node's death in the middle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import BenchmarkError, EmuError
from emulator.core.lab_id import LabId
from emulator.experiment import run_experiment
from emulator.experiment.linpack import build, mpi
from emulator.experiment.linpack.hpl_file import hpl_file
from emulator.lab import Lab
from emulator.results import store
from emulator.results.listing import listing
from emulator.results.report import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "tun", "overlay", "hpl")

TEXT = """\
kind: linpack
topology: pair.yaml
nodes: [1, 2]
n: 500
block: 64
time_scale: 2
"""
TOPOLOGY = """\
name: NAME
defaults: {device: rpi-4, calibrate: linpack, memory: 96 MiB}
nodes: {pi: {count: 2}}
links: [{from: pi-1, to: pi-2, rate: 100 Mbit, delay: 0.2 ms}]
"""


def write(folder: Path, name: str) -> Path:
    (folder / "pair.yaml").write_text(TOPOLOGY.replace("NAME", name), encoding="utf-8")
    path = folder / "small.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_run_is_solved_recorded_and_reported(tmp_path: Path) -> None:
    result = run_experiment(write(tmp_path, "hpl-pair"), out=tmp_path / "runs", force=True)
    summary = result.summary
    one, two = summary["cases"]
    assert (one["state"], two["state"]) == ("ok", "ok")
    assert all(item["passed"] and item["residual"] < 16 for case in (one, two) for item in case["repeats"])
    assert one["reference"]["flops"] == 11.889e9 and one["error"] is not None
    assert two["speedup"] == pytest.approx(two["flops"] / one["flops"])
    # Half of a matrix of 2 MB, and the panels of it, travelled over the link; alone nothing did.
    sent = {case["nodes"]: case["repeats"][0]["nodes"][0]["sent_bytes"] for case in (one, two)}
    assert sent[1] == 0 and sent[2] > 0.25 * 500 * 500 * 8
    page = result.report.read_text(encoding="utf-8")
    assert "geerlingguy/top500-benchmark" in page and "n = 500" in page
    assert (result.directory / "nodes-2" / "0" / "hpl.txt").read_text(encoding="utf-8").count("PASSED") == 1
    assert json.loads((result.directory / "plan.json").read_text())["time_scale"] == 2
    assert rebuild(store.find(str(result.directory)))["cases"] == summary["cases"]
    assert listing(tmp_path / "runs")[0]["result"].endswith(" GFLOPS")
    assert not LabId.of("hpl-pair-small").directory.exists()


def _run(folder: Path, name: str, during: Callable[[Lab], None], limit: float = 60) -> mpi.Job:
    """Two nodes solve what takes them long; `during` is called now and then."""
    path = folder / "pair.yaml"
    path.write_text(TOPOLOGY.replace("NAME", name), encoding="utf-8")
    data = build.program(lambda _text: None).read_bytes()
    text = hpl_file(3000, 64, 1, 2).encode()
    with Lab.from_file(path, runtime="embedded", time_scale=2) as lab:
        job = mpi.Job(lab, ["pi-1", "pi-2"])
        for node in job.nodes:
            mpi.place(lab, node, {"xhpl": data, "hpccinf.txt": text})
        try:
            status = job.run("xhpl", limit, lambda: during(lab))
        finally:
            left = [lab.node(node).run(["pgrep", "xhpl"]).stdout for node in job.nodes]
        assert left == ["", ""]
        assert status != 0
    return job


def test_a_rank_that_is_killed_is_told_by_its_node(tmp_path: Path) -> None:
    from emulator.experiment.linpack.output import why_failed

    def kill(lab: Lab) -> None:
        lab.node("pi-2").run(["pkill", "-9", "xhpl"])

    job = _run(tmp_path, "hpl-killed", kill)
    assert "the process on pi-2 (rank 1) was ended by signal 9" in str(why_failed("\n".join(job.output)))


def test_what_is_not_done_in_time_is_ended(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="HPL is not done after 1 real seconds"):
        _run(tmp_path, "hpl-late", lambda _lab: None, limit=1)


def test_too_little_memory_is_told_with_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The check beforehand would refuse it, and the host's speed does not matter here.
    monkeypatch.setattr("emulator.experiment.linpack.host.core_rate", lambda *_, **__: (40e9, ""))
    monkeypatch.setattr("emulator.experiment.linpack.read.memory", lambda *_: 0.0)
    path = write(tmp_path, "hpl-oom")
    with pytest.raises(EmuError, match=r"pi-1 ran out of memory: .* of 96 MiB\); make `n` smaller"):
        run_experiment(path, out=tmp_path / "runs", force=True, overrides={"n": 4000, "nodes": [1]})
    assert not LabId.of("hpl-oom-small").directory.exists()
