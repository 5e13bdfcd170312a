"""Finding classes by name, by file and by entry point, and the sentences when that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import ExperimentError
from emulator.training import exchanges, plugins


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
    found = plugins.find("models", f"{path}:Mine", {})
    assert found.__name__ == "Mine"
    assert plugins.find("models", f"{path}:Mine", {}) is found


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
