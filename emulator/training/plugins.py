"""Find a class or function by name: ours, a file's (`path.py:Name`), or an installed entry point's.

The four groups of entry points are emu.models, emu.datasets, emu.exchanges and emu.compressors; docs/extending.md
shows one of each.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import EmuError, ExperimentError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType


def find(group: str, name: str, ours: Mapping[str, str]) -> Any:
    """The object called `name` in `group` ("models", ...); `ours` maps names to "module:Name".

    Raises ExperimentError if there is none, or if the file that should define it fails.
    """
    if name in ours:
        module, _, attribute = ours[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if is_path(name):
        return _from_file(name)
    for point in entry_points(group=f"emu.{group}"):
        if point.name == name:
            return _load(point, group)
    raise _unknown(group, name, ours)


def check(group: str, name: str, ours: Mapping[str, str]) -> None:
    """Raises ExperimentError unless `find` would find something; only a plug-in in a file is imported for it."""
    if is_path(name):
        _from_file(name)
    elif name not in known(group, ours):
        raise _unknown(group, name, ours)


def known(group: str, ours: Mapping[str, str]) -> list[str]:
    """All names of a group, ours and those of installed entry points."""
    return sorted({*ours, *(point.name for point in entry_points(group=f"emu.{group}"))})


def _unknown(group: str, name: str, ours: Mapping[str, str]) -> ExperimentError:
    names = known(group, ours)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? Known" if near else "known"
    return ExperimentError(
        f"no {group[:-1]} is called {name!r}",
        fix=f"{hint} are {', '.join(names)}, or give a file as path.py:Name",
    )


def is_path(name: str) -> bool:
    """Whether `name` points into a file."""
    path, colon, _ = name.rpartition(":")
    return bool(colon) and path.endswith(".py")


def absolute(name: str, base: Path) -> str:
    """`name` with its file, if it points into one, made absolute from `base`: a node has another directory."""
    if not is_path(name):
        return name
    path, _, attribute = name.rpartition(":")
    return f"{(base / Path(path).expanduser()).resolve()}:{attribute}"


def _from_file(name: str) -> Any:
    path, _, attribute = name.rpartition(":")
    module = _module(Path(path).expanduser().resolve(), name)
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, vars(module), n=1)
        raise ExperimentError(
            f"{path} defines no {attribute!r}",
            where=name,
            fix=f"did you mean {near[0]!r}?" if near else "name a class or function of that file",
        )
    return getattr(module, attribute)


def _module(path: Path, name: str) -> ModuleType:
    key = f"emu_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if key in sys.modules:
        return sys.modules[key]
    if not path.is_file():
        raise ExperimentError(f"there is no file {path}", where=name, fix="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[key]
        raise _broken(name, error) from error
    return module


def _load(point: Any, group: str) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise _broken(f"entry point emu.{group} {point.name}", error) from error


def _broken(where: str, error: Exception) -> ExperimentError:
    if isinstance(error, EmuError):
        return ExperimentError(error.what, where=where, fix=error.fix)
    place = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
    return ExperimentError(
        f"it cannot be imported: {type(error).__name__}: {error}{place}", where=where, fix="mend it, then try again"
    )
