"""Find a class or function by name: ours, a file's (`path.py:Name`), or an installed entry point's.

The four groups of entry points are emu.models, emu.datasets, emu.exchanges and emu.compressors; docs/extending.md
shows one of each.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import EmuError, ExperimentError
from emulator.core.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType


@dataclass(frozen=True)
class _Contract:
    """What a plug-in of a group must have: read from the class, called, and read from what the class makes."""

    noun: str
    base: str
    methods: tuple[str, ...]
    of_class: tuple[str, ...] = ()
    of_instance: tuple[str, ...] = ()


_CONTRACTS = {
    "models": _Contract(
        "a model", "models/base.py", ("initial", "gradients", "evaluate", "flops"), of_instance=("layout",)
    ),
    "datasets": _Contract("a data set", "data/base.py", ("fetch", "load", "cached"), of_instance=("description",)),
    "exchanges": _Contract(
        "an exchange",
        "exchanges/base.py",
        ("select", "apply", "forget"),
        ("default_compressor",),
        ("select_flops", "apply_flops", "iteration"),
    ),
    "compressors": _Contract(
        "a compressor", "compressors/base.py", ("compress", "decompress"), of_instance=("flops_per_parameter",)
    ),
}
_MEND = "mend it, then try again"


def find(group: str, name: str, ours: Mapping[str, str]) -> Any:
    """The object called `name` in `group` ("models", ...); `ours` maps names to "module:Name".

    Raises ExperimentError if there is none, if the file that should define it fails, or if a plug-in lacks something
    of its contract.
    """
    if name in ours:
        module, _, attribute = ours[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if is_path(name):
        return _whole(group, name, _from_file(name))
    for point in entry_points(group=f"emu.{group}"):
        if point.name == name:
            return _whole(group, name, _load(point, group))
    raise _unknown(group, name, ours)


def check(group: str, name: str, ours: Mapping[str, str]) -> None:
    """Raises ExperimentError unless `find` would find something; plug-ins are imported for it, ours are not."""
    if name not in ours:
        find(group, name, ours)


@contextlib.contextmanager
def blamed(name: str, ours: Mapping[str, str], what: str, kind: type[EmuError]) -> Iterator[None]:
    """What a plug-in raises becomes a `kind` that names it and the line; what ours raises stays as it is."""
    try:
        yield
    except EmuError:
        raise
    except Exception as error:
        if name in ours:
            raise
        raise kind(f"{what} ({type(error).__name__}: {error}){_line(name, error)}", where=name, fix=_MEND) from error


def _line(name: str, error: Exception) -> str:
    """The innermost line of the plug-in's own file that the error came through, if there is one."""
    if not is_path(name):
        return ""
    file = expanded(name.rpartition(":")[0]).resolve()
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
    return f" at line {lines[-1]}" if lines else ""


def _whole(group: str, name: str, found: Any) -> Any:
    """`found` if it keeps its group's contract as far as can be seen without making one; else ExperimentError."""
    contract = _CONTRACTS.get(group)
    if contract is None:
        return found
    fix = f"docs/extending.md and emulator/training/{contract.base} say what {contract.noun} must have"
    if not callable(found):
        raise ExperimentError(f"{name} is no class", fix=fix)
    missing = [member for member in contract.of_class if not hasattr(found, member)]
    if isinstance(found, type):
        missing += [f"{method}()" for method in contract.methods if not callable(getattr(found, method, None))]
        missing += [member for member in contract.of_instance if not _sets(found, member)]
    if missing:
        raise ExperimentError(f"{name} is not {contract.noun}: it lacks {', '.join(missing)}", fix=fix)
    return found


def _sets(kind: type, member: str) -> bool:
    """Whether a class has a member, declares it, or has a method that may set it; in doubt, yes."""
    if hasattr(kind, member) or hasattr(kind, "__getattr__"):
        return True
    functions = [
        inspect.unwrap(item) for base in kind.__mro__ for item in vars(base).values() if inspect.isfunction(item)
    ]
    named = {name for function in functions for name in function.__code__.co_names}
    declared = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    return bool({member, "setattr", "__dict__"} & (named | declared))


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
    return f"{(base / expanded(path)).resolve()}:{attribute}"


def _from_file(name: str) -> Any:
    path, _, attribute = name.rpartition(":")
    module = _module(expanded(path).resolve(), name)
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
    return ExperimentError(f"it cannot be imported: {type(error).__name__}: {error}{place}", where=where, fix=_MEND)
