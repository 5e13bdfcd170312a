"""pydantic's complaints about an experiment as one sentence: which key, what is wrong, and what it should be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ExperimentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import BaseModel, ValidationError

_REFERENCE = "docs/experiments.md lists every key"


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known: the nearest that is, and what there is."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"


def explain(error: ValidationError, model: type[BaseModel], where: Callable[..., str]) -> ExperimentError:
    """The complaint that helps most as an ExperimentError; `where(*path)` gives the place of a path in the file."""
    complaints = error.errors(include_url=False)
    # A misspelt key is also a missing one: the misspelling is what helps.
    first = next((item for item in complaints if item["type"] == "extra_forbidden"), complaints[0])
    path = tuple(first["loc"])
    if path[:1] == ("time_scale",):
        path = path[:1]  # the rest tells which of its two forms was tried
    key = ".".join(str(step) for step in path)
    if first["type"] == "extra_forbidden":
        fix = nearest(str(path[-1]), _fields(model, path[:-1]))
        return ExperimentError(f"unknown key {key!r}", where=where(*path), fix=fix)
    if first["type"] == "missing":
        return ExperimentError(f"{key!r} is missing", where=where(*path[:-1]), fix=f"add it; {_REFERENCE}")
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "it must be")
    value = repr(first["input"])
    about = f"{key} cannot be {value if len(value) < 60 else 'this'}: " if key else ""
    return ExperimentError(f"{about}{message}", where=where(*path), fix=f"change it; {_REFERENCE}")


def _fields(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """The keys allowed at a path of the model, following nested models and mappings of models."""
    current: type[BaseModel] | None = model
    for step in path:
        if current is None or step not in current.model_fields:
            continue  # a key of a mapping of models: the mapping's model stands already
        current = _model_in(current.model_fields[step].annotation)
    return [] if current is None else list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    from pydantic import BaseModel

    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel)), None)
