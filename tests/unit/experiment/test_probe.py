"""The cost of a step, measured in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import ExperimentError
from emulator.experiment.probe import measure
from emulator.training import data
from emulator.training.spec import Variant, Workload

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path))
    return str(data.fetch("synthetic-mnist"))


def test_a_larger_batch_costs_more(directory: str) -> None:
    small = measure(Workload("softmax", "synthetic-mnist", batch=10), directory)
    large = measure(Workload("softmax", "synthetic-mnist", batch=5000), directory)
    assert small.parameters == large.parameters == 7850
    assert 0 < small.step_seconds < large.step_seconds


def test_a_step_of_each_variant_is_measured_with_its_selection(directory: str) -> None:
    variants = [Variant("dense"), Variant("sparse", exchange="adacomp")]
    found = measure(Workload("softmax", "synthetic-mnist"), directory, variants)
    assert list(found.steps) == ["dense", "sparse"]
    assert found.steps["sparse"].flops > found.steps["dense"].flops >= 4 * 7840 * 10
    assert all(step.seconds > found.step_seconds for step in found.steps.values())


def test_a_model_that_fails_is_one_sentence(directory: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    methods = "".join(f"    def {name}(self): ...\n" for name in ("initial", "gradients", "evaluate", "flops"))
    raising = "    def __init__(self, options):\n        raise RuntimeError('no such layer')\n"
    broken.write_text(f"class Model:\n    layout = None\n{methods}{raising}")
    with pytest.raises(ExperimentError, match=r"does not run \(RuntimeError: no such layer\); mend the model"):
        measure(Workload(f"{broken}:Model", "synthetic-mnist"), directory)
