"""The real MNIST: fetched if it is not in the cache, the right files, and learned over a modelled WAN."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emulator.core.record import read
from emulator.simulation.engine import run_roles
from emulator.training import data
from emulator.training.spec import Variant, Workload
from tests.unit.simulation.clusters import line, specs, star


def test_the_files_are_mnist() -> None:
    root = data.fetch("mnist")
    train, test = (data.load("mnist", root, part) for part in ("train", "test"))
    assert np.bincount(train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert train.images.shape == (60_000, 28, 28)


def test_the_papers_cnn_learns_it_by_adacomp(tmp_path: Path) -> None:
    root = data.fetch("mnist")
    nodes = {"server": "parameter_server"} | {f"w{n}": "worker" for n in range(4)}
    plan = star({"server": line(1000, 1)} | {f"w{n}": line(20, 2 + 10 * n) for n in range(4)}, gflops=15.8)
    variant = Variant("adacomp", "adacomp", learning_rate=0.05)
    given = specs(
        nodes, workload=Workload(), variant=variant, data_directory=str(root), budget=150.0, evaluate_every=150.0
    )
    run_roles(plan, given, tmp_path, evaluate_from=50.0)
    (last,) = read(tmp_path / "evaluator.jsonl")
    assert last["updates"] > 400
    assert last["accuracy"] > 0.8
    assert last["payload_bytes_to_server"] == 33_728 * last["updates"]
