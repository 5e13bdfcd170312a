"""Experiment files: what is right is read whole, what is wrong is one sentence with its line and remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import ExperimentError
from emulator.experiment.find import known
from emulator.experiment.read import parse_setting, read
from tests.unit.experiment.files import EXPERIMENT, changed, write

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    found = read(write(tmp_path))
    assert found.name == "small"
    assert found.topology == (tmp_path / "trio.yaml").resolve()
    assert (found.workload.model, found.workload.batch, found.workload.shards) == ("softmax", 10, 1200)
    assert [(v.name, v.exchange, v.compression, v.learning_rate) for v in found.variants] == [
        ("asgd", "asgd", 0.01, 0.001),
        ("adacomp", "adacomp", 0.01, 0.005),
    ]
    resolved = found.resolved()
    assert (resolved["budget"], resolved["evaluate_every"], resolved["repeats"]) == (1.0, 0.1, 1)
    assert resolved["baseline"] == "asgd"


def test_plug_in_files_are_found_beside_the_experiment(tmp_path: Path) -> None:
    text = "from emulator.training.exchanges.asgd import Asgd\n\n\nclass Mine(Asgd):\n    pass\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    found = read(write(tmp_path, changed("exchange: adacomp", "exchange: mine.py:Mine")))
    assert found.variants[1].exchange == f"{tmp_path.resolve()}/mine.py:Mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("c: 0.01", "ratio: 0.01"), r"small.yaml:13: unknown key 'variants.adacomp.ratio'; use one of c, "),
        (changed("    exchange: adacomp", "    exchnage: adacomp"), r":12: unknown key .*; did you mean 'exchange'"),
        (changed("exchange: adacomp", "exchange: adacmp"), r":12: no exchange is called 'adacmp'; did you mean"),
        (changed("model: softmax", "model: sofmax"), r"l:4: no model is called 'sofmax'; did you mean 'softmax'"),
        (changed("dataset: synthetic-mnist", "dataset: minst"), r":5: no dataset is called 'minst'; did you mean"),
        (changed("sharding: iid", "sharding: random"), r":6: .*'random': it must be 'contiguous', 'iid' or"),
        (changed("budget: 1 s", "budget: -2 s"), r"small.yaml:15: budget cannot be '-2 s': .* not negative"),
        (changed("budget: 1 s", "budget: 0 s"), r"small.yaml:15: .*it must be longer than 0 s"),
        (changed("budget: 1 s", "budget: 2"), r"small.yaml:15: .*has no unit; write a delay like '35 ms'"),
        (changed("budget: 1 s", "budget: 2 Mbit"), r"small.yaml:15: .*'Mbit' is not a unit of a delay"),
        (changed("budget: 1 s\n", ""), r"small.yaml:1: 'budget' is missing; add it"),
        (
            changed("evaluate_every: 0.1 s", "evaluate_every: 0.1 s\nevaluate_last: 0.25 s"),
            r"the last 5 evaluations, 250 ms apart, do not fit into 1 s",
        ),
        (changed("evaluate_every: 0.1 s", "evaluate_every: 9 s"), r"evaluate_every \(9 s\) is longer than the budget"),
        (changed("learning_rate: 0.001", "learning_rate: 0"), r"small.yaml:10: .*it must be greater than 0"),
        (changed("learning_rate: 0.001", "learning_rate: .nan"), r"small.yaml:10: .*learning_rate cannot be nan"),
        (changed("c: 0.01", "c: 1.5"), r"small.yaml:13: .*it must be less than or equal to 1"),
        (changed("  adacomp:", "  asgd:"), r"small.yaml:11: 'asgd' is written twice"),
        (changed("  adacomp:", "  ../up:"), r"variant name '../up' must be up to 40 of"),
        (changed("seed: 3", "seed: -1"), r"small.yaml:17: .*greater than or equal to 0"),
        (changed("seed: 3", "repeats: 0"), r"small.yaml:17: .*greater than or equal to 1"),
        (changed("seed: 3", "time_scale: fast"), r"small.yaml:17: time_scale cannot be 'fast': .*write auto, or a"),
        (changed("seed: 3", "time_scale: 0"), r"small.yaml:17: .*greater than or equal to 0.0001"),
        (changed("seed: 3", "baseline: agd"), r"baseline 'agd' is not a variant"),
        (EXPERIMENT + "x: [", r"small.yaml:\d+: this is not YAML"),
        ("", r"small.yaml: this file is empty; write `topology`, `variants`"),
        ("- 1", r"small.yaml:1: this file does not hold a mapping; write `topology`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message) as caught:
        read(write(tmp_path, text))
    assert caught.value.exit_code == 11
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=re.escape(f"{tmp_path}/no.yaml: there is no such file")):
        read(tmp_path / "no.yaml")


def test_a_name_that_is_not_known_gives_the_nearest() -> None:
    with pytest.raises(
        ExperimentError, match=r"there is no experiment 'adacomp-minst'; did you mean 'adacomp-mnist'\?"
    ):
        read("adacomp-minst")


@pytest.mark.parametrize("name", sorted({*known()} - {"linpack"}))
def test_experiments_that_ship_can_be_read(name: str) -> None:
    found = read(name)
    assert found.topology.is_file()
    assert found.model.description


def test_the_main_experiment_is_what_it_promises() -> None:
    found = read("adacomp-mnist")
    resolved = found.resolved()
    assert (resolved["budget"], resolved["time_scale"], resolved["workload"]["batch"]) == (620.0, 0.17, 10)
    assert [variant.name for variant in found.variants] == ["asgd", "comp-asgd", "adacomp"]
    assert {variant.learning_rate for variant in found.variants} <= {0.01, 0.02, 0.05, 0.1, 0.2}
    assert found.variants[2].compression == 0.01


def test_settings_override_the_file(tmp_path: Path) -> None:
    settings = ("workload.batch=20", "variants.adacomp.learning_rate=0.05", "budget=9 s", "workload.options.depth=2")
    found = read(write(tmp_path), dict(parse_setting(text) for text in settings))
    assert found.workload.batch == 20
    assert found.workload.options == {"depth": 2}
    assert found.variants[1].learning_rate == 0.05
    assert float(found.model.budget) == 9.0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("budgt=2 s", r"--set budgt=2 s: an experiment has no key 'budgt'; did you mean 'budget'\?"),
        ("variants.adcomp.c=0.1", r"variants has no key 'adcomp'; did you mean 'adacomp'\?"),
        ("variants.adacomp.lr=0.1", r"variants.adacomp has no key 'lr'"),
        ("workload.batch=none", r"--set workload.batch=none: workload.batch cannot be 'none'"),
        ("workload.batch.x=1", r"workload.batch has no key 'x'; set 'workload.batch' itself"),
        ("variants.adacomp.exchange=adacmp", r"small.yaml:12: no exchange is called 'adacmp'"),
    ],
)
def test_a_wrong_setting_is_one_sentence(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        read(write(tmp_path), dict([parse_setting(setting)]))


@pytest.mark.parametrize("text", ["workload.batch", "=3", "a=[1,"])
def test_a_setting_that_is_none(text: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(f"--set {text}: ")):
        parse_setting(text)
