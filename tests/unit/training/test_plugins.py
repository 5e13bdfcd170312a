"""Finding classes by name, by file and by entry point, and the sentences when that fails."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from emulator.core.errors import ExperimentError
from emulator.training import compressors, data, exchanges, models, plugins


def test_ours_are_found_by_name() -> None:
    for name in exchanges.NAMES:
        assert plugins.find("exchanges", name, exchanges.NAMES).default_compressor in ("dense", "top-k")


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    for look in (plugins.find, plugins.check):
        with pytest.raises(ExperimentError, match="no exchange is called 'adacmp'; did you mean 'adacomp'"):
            look("exchanges", "adacmp", exchanges.NAMES)


def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class Mine:\n    pass\n")
    found = plugins.find("roles", f"{path}:Mine", {})
    assert found.__name__ == "Mine"
    assert plugins.find("roles", f"{path}:Mine", {}) is found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no file"),
        ("class Nine: pass\n", "defines no 'Mine'; did you mean 'Nine'"),
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("class Mine(:\n", "cannot be imported: SyntaxError: .*line 1"),
    ],
)
def test_a_file_that_will_not_do_is_a_sentence(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ExperimentError, match=says):
        plugins.find("models", f"{path}:Mine", {})


def test_a_files_name_is_made_absolute(tmp_path: Path) -> None:
    assert plugins.absolute("mine.py:Mine", tmp_path) == f"{tmp_path / 'mine.py'}:Mine"
    assert plugins.absolute("mnist-cnn", tmp_path) == "mnist-cnn"


@pytest.mark.parametrize(
    ("group", "text", "says"),
    [
        (
            "exchanges",
            "class A: pass",
            r"not an exchange: it lacks default_compressor, select\(\), apply\(\), forget\(\), select_flops, "
            r"apply_flops, iteration; docs/extending.md and emulator/training/exchanges/base.py say",
        ),
        ("compressors", "class A: compress = None", r"lacks compress\(\), decompress\(\), flops_per_parameter;"),
        ("models", "class A: layout = 1", r"lacks initial\(\), gradients\(\), evaluate\(\), flops\(\);"),
        (
            "datasets",
            "class A:\n  description = ''\n  def load(self): ...",
            r"a data set: it lacks fetch\(\), cached\(\);",
        ),
        ("models", "A = 3", "is no class"),
    ],
)
def test_a_class_that_lacks_its_contract_is_a_sentence(tmp_path: Path, group: str, text: str, says: str) -> None:
    path = tmp_path / "ok.py"
    path.write_text(text + "\n")
    for look in (plugins.find, plugins.check):
        with pytest.raises(ExperimentError, match=says):
            look(group, f"{path}:A", {})


def test_members_that_a_method_sets_and_factories_count(tmp_path: Path) -> None:
    path = tmp_path / "ok.py"
    path.write_text(
        "class A:\n def __init__(self, *_): self.flops_per_parameter = 1.0\n"
        " def compress(self, gradients): ...\n def decompress(self, arrays): ...\n"
        "def make(layout, variant, seed): return A()\n"
    )
    plugins.check("compressors", f"{path}:A", {})
    plugins.check("compressors", f"{path}:make", {})


def test_all_of_ours_keep_their_contracts() -> None:
    for group, ours in (
        ("exchanges", exchanges.NAMES),
        ("compressors", compressors.NAMES),
        ("models", models.NAMES),
        ("datasets", data.NAMES),
    ):
        for target in ours.values():
            module, _, name = target.partition(":")
            plugins.check(group, f"{import_module(module).__file__}:{name}", {})
