"""Data sets: fetched once into a cache directory, then memory-mapped by every node.

Cache: EMU_DATA_DIR, else `emu/data` in the user's cache directory; each data set has a folder of its name in it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from emulator.core.cache import user_cache
from emulator.core.errors import DataError, ExperimentError
from emulator.training import plugins

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.training.data.base import Dataset, Part, Samples

NAMES = {
    "mnist": "emulator.training.data.mnist:Mnist",
    "synthetic-mnist": "emulator.training.data.synthetic:SyntheticMnist",
}


def directory() -> Path:
    """The cache directory; not made by this call."""
    given = os.environ.get("EMU_DATA_DIR")
    if given:
        try:
            return Path(given).expanduser().absolute()
        except RuntimeError as error:
            raise DataError(f"{given}: {error}", where="EMU_DATA_DIR", fix="set it to a path without ~") from None
    return user_cache() / "data"


def find(name: str) -> Dataset:
    """The data set of that name; raises ExperimentError if there is none, or a plug-in that cannot be made."""
    kind = plugins.find("datasets", name, NAMES)
    with plugins.blamed(name, NAMES, "it cannot be made", ExperimentError):
        return cast("Dataset", kind())


def folder(name: str, root: Path | None = None) -> Path:
    """The folder of a data set in the cache directory `root` (default: the user's)."""
    return (root or directory()) / (name.rpartition(":")[2] if plugins.is_path(name) else name)


def fetch(name: str, root: Path | None = None, say: Callable[[str], None] = lambda _line: None) -> Path:
    """Make sure that a data set lies in the cache directory, and return that directory (for `RoleSpec`).

    `say` is told what happens, line by line. Raises DataError.
    """
    found = find(name)
    with plugins.blamed(name, NAMES, "its fetch failed", DataError):
        found.fetch(folder(name, root), say)
    return root or directory()


def load(name: str, root: Path | None, part: Part) -> Samples:
    """The samples of a fetched data set; raises DataError if it is not there or damaged."""
    found = find(name)
    with plugins.blamed(name, NAMES, "its load failed", DataError):
        return found.load(folder(name, root), part)


def cached(name: str, root: Path | None = None) -> int | None:
    """Bytes of a data set in the cache directory if it looks complete (a quick look), else None; raises DataError."""
    found = find(name)
    with plugins.blamed(name, NAMES, "its cached failed", DataError):
        return found.cached(folder(name, root))


def known() -> list[str]:
    """The names of all data sets, ours and those of installed entry points."""
    return plugins.known("datasets", NAMES)
