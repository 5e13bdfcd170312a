"""The examples of docs/extending.md, each run on the virtual clock; and a plug-in found by its entry point."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.core.record import read
from emulator.simulation.engine import run_roles
from emulator.training import data, exchanges, plugins
from emulator.training.spec import Variant, Workload
from tests.unit.simulation.clusters import line, specs, star

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MODEL = f"{EXAMPLES / 'perceptron.py'}:Perceptron"
DATASET = f"{EXAMPLES / 'stripes.py'}:Stripes"
PLAIN_MODEL = Workload("softmax", "synthetic-mnist")
PLAIN = Variant("v", learning_rate=0.05)


def accuracy(tmp_path: Path, workload: Workload, variant: Variant) -> float:
    """Final accuracy of a short run; every push must have been applied."""
    root = data.fetch(workload.dataset, tmp_path / "data")
    nodes = {"server": "parameter_server", "w1": "worker", "w2": "worker"}
    plan = star({"server": line(1000), "w1": line(100, 1), "w2": line(10, 20)}, gflops=10.0)
    given = specs(nodes, workload=workload, variant=variant, data_directory=str(root), budget=60.0)
    run_roles(plan, [replace(spec, max_updates=250) for spec in given], tmp_path / "out")
    records = list(read(tmp_path / "out" / "server.jsonl"))
    assert not [item for item in records if item["kind"] == "dropped"]
    assert records[-1]["updates"] == 250
    return float(list(read(tmp_path / "out" / "evaluator.jsonl"))[-1]["accuracy"])


def test_a_model_of_ones_own_learns(tmp_path: Path) -> None:
    assert accuracy(tmp_path, replace(PLAIN_MODEL, model=MODEL, options={"hidden": 16}), PLAIN) > 0.9


def test_a_data_set_of_ones_own_is_fetched_and_learned(tmp_path: Path) -> None:
    assert accuracy(tmp_path, Workload(MODEL, DATASET), PLAIN) > 0.9
    assert data.cached(DATASET, tmp_path / "data") is not None


def test_a_compressor_of_ones_own_learns(tmp_path: Path) -> None:
    variant = replace(PLAIN, compressor=f"{EXAMPLES / 'random_k.py'}:RandomK", compression=0.2)
    assert accuracy(tmp_path, PLAIN_MODEL, variant) > 0.9


@pytest.mark.parametrize("compressor", ["none", "top-k"])
def test_an_exchange_of_ones_own_learns(tmp_path: Path, compressor: str) -> None:
    variant = replace(PLAIN, exchange=f"{EXAMPLES / 'stale_sgd.py'}:StalenessAware", compressor=compressor)
    assert accuracy(tmp_path, PLAIN_MODEL, replace(variant, compression=0.1)) > 0.9


def test_an_installed_plug_in_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stale_sgd.py").write_text((EXAMPLES / "stale_sgd.py").read_text())
    information = tmp_path / "stale_sgd-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: stale-sgd\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[emu.exchanges]\nstale-sgd = stale_sgd:StalenessAware\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "stale-sgd" in plugins.known("exchanges", exchanges.NAMES)
    found = plugins.find("exchanges", "stale-sgd", exchanges.NAMES)
    assert found.__name__ == "StalenessAware"
    sys.modules.pop("stale_sgd")
