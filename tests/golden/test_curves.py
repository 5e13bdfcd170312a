"""Saved curves: a small seeded run must give the series it gave when they were saved.

Times, workers, staleness and bytes follow from the models of time alone and are compared exactly. Losses and sigmas
pass through floating-point kernels that differ between CPUs in the last digits, and so they are compared to 1 %.
A real change rewrites the files, in the same commit, with its reason: `python -m tests.golden.test_curves`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from emulator.core.record import read
from emulator.simulation.engine import run_roles
from emulator.training import data
from emulator.training.spec import Variant, Workload
from tests.unit.simulation.clusters import line, specs, star

HERE = Path(__file__).parent
EXCHANGES = ("asgd", "comp-asgd", "adacomp")
NODES = {"server": "parameter_server", "w1": "worker", "w2": "worker", "w3": "worker"}
LINES = {"server": line(1000, 1), "w1": line(20, 2), "w2": line(9, 42, jitter_ms=5), "w3": line(1, 25, loss=0.01)}
RATES = {"asgd": 0.01, "comp-asgd": 0.05, "adacomp": 0.05}


def curve(exchange: str, model: str, out: Path) -> dict[str, list[Any]]:
    """The series of twenty updates."""
    root = data.fetch("synthetic-mnist", out / "data")
    variant = Variant(exchange, exchange, learning_rate=RATES[exchange])
    given = specs(
        NODES,
        workload=Workload(model, "synthetic-mnist"),
        variant=variant,
        data_directory=str(root),
        budget=600.0,
        max_updates=20,
        evaluate_every=600.0,
        seed=11,
    )
    run_roles(star(LINES, gflops=15.8), given, out / "run")
    updates = [item for item in read(out / "run" / "server.jsonl") if item["kind"] == "update"]
    steps = [item for name in ("w1", "w2", "w3") for item in read(out / "run" / f"{name}.jsonl")]
    evaluations = list(read(out / "run" / "evaluator.jsonl"))
    return {
        "exact": [[u["t"], u["worker"], u["staleness"], u["payload_bytes"], u["message_bytes"]] for u in updates],
        "bytes_to_server": [item["message_bytes_to_server"] for item in evaluations],
        "sigma": [item["sigma_mean"] for item in updates],
        "loss": [item["loss"] for item in steps if item["kind"] == "step"] + [item["loss"] for item in evaluations],
    }


@pytest.mark.parametrize("model", ["softmax", "mnist-cnn"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_small_run_gives_its_saved_curve(exchange: str, model: str, tmp_path: Path) -> None:
    found = curve(exchange, model, tmp_path)
    saved = json.loads((HERE / f"{model}-{exchange}.json").read_text())
    assert found["exact"] == saved["exact"]
    assert found["bytes_to_server"] == saved["bytes_to_server"]
    assert found["loss"] == pytest.approx(saved["loss"], rel=0.01)
    for now, then in zip(found["sigma"], saved["sigma"], strict=True):
        assert now == (then if then is None else pytest.approx(then, rel=0.01, abs=0.01))


def save() -> None:
    """Write all curves anew."""
    for model in ("softmax", "mnist-cnn"):
        for exchange in EXCHANGES:
            with tempfile.TemporaryDirectory() as out:
                text = json.dumps(curve(exchange, model, Path(out)), separators=(",", ":"))
            (HERE / f"{model}-{exchange}.json").write_text(text + "\n")


if __name__ == "__main__":
    save()
