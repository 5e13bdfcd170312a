"""Experiment files of kind linpack: what is right is read whole, what is wrong is one sentence with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import ExperimentError, HostError, UsageError
from emulator.core.units import Size
from emulator.devices.host import nominal
from emulator.experiment.find import described
from emulator.experiment.linpack.read import memory, read
from emulator.experiment.run import run_experiment
from emulator.topology import resolve

SHIPPED = Path("experiments/linpack.yaml")
TEXT = """\
kind: linpack
topology: four.yaml
nodes: [1, 4]
n: 2000
references:
  - {device: rpi-4-study, nodes: 4, hpl: 47 GFLOPS, source: a paper}
"""
TOPOLOGY = """\
name: four
defaults: {device: rpi-4-study, calibrate: linpack}
nodes: {hub: {kind: switch}, pi: {count: 4}}
links: [{from: pi-*, to: hub, rate: 1 Gbit}]
"""


def write(folder: Path, text: str = TEXT, topology: str = TOPOLOGY) -> Path:
    (folder / "four.yaml").write_text(topology, encoding="utf-8")
    path = folder / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_one_is_sound() -> None:
    found = read(SHIPPED)
    plan = resolve(found.topology(), host=nominal())
    found.check(plan)
    resolved = found.resolved("rpi-4-study", {})
    assert [case["grid"] for case in resolved["cases"]] == [[1, 1], [1, 2], [1, 4]]
    assert {item["nodes"]: (item["flops"], item["calibrated"]) for item in resolved["references"]} == {
        1: (15.5e9, True),
        4: (47e9, False),
    }
    assert "linpack" in {item["name"] for item in described()}


def test_the_device_may_be_another(tmp_path: Path) -> None:
    found = read(write(tmp_path), {"device": "rpi-4"})
    assert {node.device for node in resolve(found.topology(), host=nominal()).machines} == {"rpi-4"}
    # The study's figure of four is not that board's.
    assert [item["flops"] for item in found.resolved("rpi-4", {})["references"]] == [11.889e9]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n: 2000", "n: 0", r"small.yaml:4: n cannot be 0: it must be greater than or equal to 1"),
        ("n: 2000", "size: 2000", r"small.yaml:4: unknown key 'size'; use one of"),
        ("[1, 4]", "[1, 1]", r"node counts \[1, 1\] name one twice"),
        ("[1, 4]", "[]", r"small.yaml:3: nodes cannot be"),
        ("n: 2000", "grids: {4: 2x3}", r"a grid of 2x3 needs 6 nodes, not 4"),
        ("n: 2000", "grids: {2: 1x2}", r"a grid is given for 2 nodes, which are not among the counts \[1, 4\]"),
        ("n: 2000", "grids: {4: two}", r"it must be rows x columns, like 1x4"),
        ("47 GFLOPS", "47 GB", r"'GB' is not a unit of a computing speed"),
        ("device: rpi-4-study", "device: rpi-44", r"there is no device 'rpi-44'; did you mean"),
        (
            "kind: linpack",
            "kind: linpak",
            r"small.yaml:1: there is no kind 'linpak' of experiment; did you mean 'linpack'",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        run_experiment(write(tmp_path, TEXT.replace(old, new)), runtime="embedded")


@pytest.mark.parametrize(
    ("changes", "topology", "message"),
    [
        ({"nodes": [8]}, TOPOLOGY, r"the topology has 4 nodes that run programs, not 8; ask for at most 4"),
        ({"n": 40000}, TOPOLOGY, r"l:4: n = 40000 on 1 node needs 12.2 GiB of each, and pi-1 has 4; write n at most"),
        ({}, TOPOLOGY.replace("pi: {count: 4}", "pi: {count: 3}, z: {device: rpi-4}").replace("pi-*", "[pi-*, z]"),
         r"nodes are of several devices \(rpi-4-study, rpi-4\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_nodes(tmp_path: Path, changes: dict[str, object], topology: str, message: str) -> None:
    found = read(write(tmp_path, topology=topology), changes)
    with pytest.raises(ExperimentError, match=message):
        found.check(resolve(found.topology(), host=nominal()))


def test_the_largest_n_that_is_offered_fits(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="write n at most") as told:
        found = read(write(tmp_path), {"n": 60000, "nodes": [1]})
        found.check(resolve(found.topology(), host=nominal()))
    offered = int(str(told.value).rsplit(" ", 1)[1])
    assert Size.parse("3.5 GiB") < memory(offered, 128, 1) <= Size.parse("4 GiB")


def test_only_embedded_nodes_have_the_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="HPL runs in embedded nodes, not by fake; leave it out"):
        run_experiment(write(tmp_path), runtime="fake", out=tmp_path)


def test_without_mpirun_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(HostError, match="HPL needs Open MPI, and there is no mpirun; `apt-get install"):
        run_experiment(write(tmp_path), out=tmp_path)
    assert not (tmp_path / "small").exists()
