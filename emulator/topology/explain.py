"""pydantic's findings -> one sentence with file, line and the nearest right key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import ValidationError

    from emulator.core.yaml_file import Document

_MUST = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known: the nearest right one, else all of them."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, 1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"use one of {', '.join(names)}" if names else "there is none yet; add it"


def explain(error: ValidationError, document: Document) -> TopologyError:
    """The first finding, in the order of the file, as a TopologyError."""
    findings = [_sentence(item, document) for item in error.errors(include_url=False)]
    return min(findings, key=lambda pair: pair[0])[1]


def _sentence(item: Any, document: Document) -> tuple[int, TopologyError]:
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    steps = [step for step in item["loc"] if step != "[key]"]
    if kind == "unknown_key":
        steps.append(context["key"])
        what, fix = f"unknown key {context['key']!r}", nearest(context["key"], context["known"])
    else:
        what, fix = _what(kind, context, _name(kind, steps, document), value)
    where = document.where(*steps)
    return int(where.rpartition(":")[2]), TopologyError(what, where=where, fix=fix)


def _name(kind: str, steps: list[Any], document: Document) -> str:
    """What the finding is about, as the file calls it."""
    written = steps[-1:] if kind == "missing" else document.written(*steps)
    keys = [step for step in written if isinstance(step, str)]
    if not keys:
        return "this"
    return f"`{keys[-1]}`" if isinstance(written[-1], str) else f"item {written[-1] + 1} of `{keys[-1]}`"


def _what(kind: str, context: dict[str, Any], name: str, value: object) -> tuple[str, str]:
    """The fact and the remedy for one finding about `name`."""
    if kind == "missing":
        return f"{name} is missing", "add it"
    if kind == "value_error":
        what, _, fix = str(context["error"]).partition("; ")
        return f"{name}: {what}", fix or "mend the value"
    if kind == "literal_error":
        choices = [word.strip("' ") for word in context["expected"].replace(" or ", ", ").split(",")]
        return f"{name} cannot be {value!r}", nearest(str(value), choices)
    limits = {"greater_than": "above", "greater_than_equal": "at least", "less_than_equal": "at most"}
    if kind in limits:
        bound = next(context[key] for key in ("gt", "ge", "le") if key in context)
        return f"{name} cannot be {value!r}", f"it must be {limits[kind]} {bound:g}"
    if kind == "string_too_short":
        return f"{name} is empty", "write its value, or leave the key out"
    must = _MUST.get(kind)
    if must and value is None:
        return f"{name} is empty", f"write {must}"
    if must:
        return f"{name} cannot be {_short(value)}", f"write {must}"
    return f"{name} cannot be {_short(value)}", "see `emu schema` for what it may be"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
