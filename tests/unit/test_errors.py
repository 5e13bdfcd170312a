"""Every error class has an exit code of its own, a remedy by its signature, and its line in docs/errors.md."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from emulator.core import errors

CLASSES = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, errors.EmuError)]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_exit_codes_are_distinct() -> None:
    codes = [item.exit_code for item in CLASSES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("error", CLASSES, ids=lambda item: item.__name__)
def test_listed_on_the_page(error: type[errors.EmuError]) -> None:
    assert f"| {error.exit_code} | `{error.__name__}` |" in PAGE.read_text()


@pytest.mark.parametrize("error", CLASSES, ids=lambda item: item.__name__)
def test_says_what_where_and_how_to_mend_it(error: type[errors.EmuError]) -> None:
    with pytest.raises(TypeError, match="fix"):
        error("no remedy given")
    assert str(error("it broke", where="file:3", fix="mend it")) == "file:3: it broke; mend it"
