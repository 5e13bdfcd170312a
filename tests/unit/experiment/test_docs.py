"""docs/experiments.md names every key of the file and every figure of the summary, and its example can be read."""

from __future__ import annotations

import re
from pathlib import Path

from emulator.experiment.model import ExperimentModel, VariantModel, WorkloadModel
from emulator.experiment.read import read
from emulator.results.summary import FIGURES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_every_key_and_figure_is_there() -> None:
    keys = [*ExperimentModel.model_fields, *WorkloadModel.model_fields, *VariantModel.model_fields, *FIGURES]
    assert [key for key in keys if f"`{key}`" not in PAGE] == []


def test_the_example_can_be_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "example.yaml"
    path.write_text(text.replace("../topologies", str(ROOT / "topologies")), encoding="utf-8")
    found = read(path)
    assert [variant.name for variant in found.variants] == ["asgd", "adacomp"]
    assert found.topology.is_file()
