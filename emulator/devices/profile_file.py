"""A profile's YAML file -> what it says, checked key by key; what contradicts what is told by `checks`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.core.errors import DeviceError, TopologyError
from emulator.core.units import Delay, Quantity
from emulator.devices.figures import KINDS, Figure, ThermalStep, TrainingFigure
from emulator.devices.units import Celsius, Count, Frequency

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from emulator.core.yaml_file import Document, Step

#: written for a figure of the extended device that does not hold for this one
UNKNOWN = "unknown"
KEYS = ("title", "extends", "cpu_model", *KINDS, "training", "thermal")
FIGURE_KEYS = ("value", "source", "derived", "conditions")
TRAINING_KEYS = ("source", "derived", "conditions", "batch", "image", "batches", "seconds")
THERMAL_KEYS = ("above", "clock", "source", "derived")
MAX_CORES = 4096
MODEL = re.compile(r"^[a-z0-9][a-z0-9_.-]*$")
_FORM = "write `title:` and figures like `cores: {value: 4, source: ...}`, as docs/devices.md shows"


@dataclass(frozen=True)
class ProfileFile:
    """What one file says. A figure that is None, or training or thermal steps that are (), is said to be unknown;
    `training` and `thermal` None = the file says nothing of them."""

    title: str
    extends: str
    cpu_model: str | None
    figures: Mapping[str, Figure | None]
    training: tuple[TrainingFigure, ...] | None
    thermal: tuple[ThermalStep, ...] | None


def read(path: Path) -> ProfileFile:
    """Read a profile; raises DeviceError with file, line and remedy."""
    return _Reader(document(path)).read()


def document(path: Path) -> Document:
    """The file's plain data and lines; raises DeviceError for what is no YAML mapping."""
    from emulator.core.yaml_file import read as read_yaml

    try:
        return read_yaml(path)
    except TopologyError as error:
        fix = _FORM if "nodes" in error.fix or "topology" in error.fix else error.fix
        raise DeviceError(error.what, where=error.where, fix=fix) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known: the nearest right one, else all of them."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"


class _Reader:
    """Reads one document; every method takes the steps to what it reads, for the line of an error."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def read(self) -> ProfileFile:
        data = self._document.data
        self._known(data, KEYS, ())
        figures = {key: self._figure(key, data[key]) for key in KINDS if key in data}
        core = self._text(data["cpu_model"], ("cpu_model",)) if "cpu_model" in data else None
        return ProfileFile(
            title=self._needed_text(data, "title", ()),
            extends=self._text(data["extends"], ("extends",)) if "extends" in data else "",
            cpu_model=core,
            figures=figures,
            training=self._training(data["training"]) if "training" in data else None,
            thermal=self._thermal(data["thermal"]) if "thermal" in data else None,
        )

    def _figure(self, key: str, raw: Any) -> Figure | None:
        if raw == UNKNOWN:
            return None
        kind = KINDS[key]
        form = f"{{value: {kind.quantity.example}, source: ...}}"
        fields = self._mapping(raw, FIGURE_KEYS, (key,), form)
        value = self._quantity(kind.quantity, fields, "value", (key,))
        if value <= 0:
            raise self._error(f"`{key}` is {value}", f"write what it is, or `{key}: {UNKNOWN}`", key, "value")
        if key == "cores" and (not value.is_integer() or value > MAX_CORES):
            raise self._error(f"there are no {value} cores", "write a whole number", key, "value")
        return Figure(
            float(value),
            kind.unit,
            self._needed_text(fields, "source", (key,)),
            self._text(fields.get("derived", ""), (key, "derived")),
            self._conditions(fields, (key,)),
        )

    def _training(self, raw: Any) -> tuple[TrainingFigure, ...]:
        if raw == UNKNOWN:
            return ()
        found: dict[tuple[str, int, int], TrainingFigure] = {}
        for index, item in enumerate(self._list(raw, "training")):
            at: tuple[Step, ...] = ("training", index)
            fields = self._mapping(item, TRAINING_KEYS, at, "{source: ..., batch: 16, image: 224, seconds: {...}}")
            batch, image = (self._whole(fields, key, at) for key in ("batch", "image"))
            batches = self._whole(fields, "batches", at) if "batches" in fields else 1
            source = self._needed_text(fields, "source", at)
            derived = self._text(fields.get("derived", ""), (*at, "derived"))
            conditions = self._conditions(fields, at)
            times = fields.get("seconds")
            if not isinstance(times, dict) or not times:
                raise self._error(
                    "`seconds` does not say how long each model took",
                    "write like `seconds: {resnet18: 218.37 s}`",
                    *at,
                    "seconds",
                )
            for model in times:
                steps = (*at, "seconds", model)
                if not MODEL.match(model):
                    raise self._error(f"{model!r} is no model's name", "use a-z, 0-9, _, . and -", *steps)
                if (model, batch, image) in found:
                    raise self._error(
                        f"{model} at batch {batch}, image {image} stands here twice", "keep one of the two", *steps
                    )
                took = self._quantity(Delay, times, model, (*at, "seconds"))
                if took <= 0:
                    raise self._error(f"a step of {model} takes {took}", "write what it took, or leave it out", *steps)
                found[model, batch, image] = TrainingFigure(
                    model, batch, image, took / batches, source, derived, conditions
                )
        return tuple(found.values())

    def _thermal(self, raw: Any) -> tuple[ThermalStep, ...]:
        if raw == UNKNOWN:
            return ()
        found = []
        for index, item in enumerate(self._list(raw, "thermal")):
            at: tuple[Step, ...] = ("thermal", index)
            fields = self._mapping(item, THERMAL_KEYS, at, "{above: 80 C, clock: 1 GHz, source: ...}")
            above = float(self._quantity(Celsius, fields, "above", at)) if "above" in fields else None
            clock = float(self._quantity(Frequency, fields, "clock", at)) if "clock" in fields else None
            if above is None and clock is None:
                raise self._error("this step says neither `above` nor `clock`", "write at least one of them", *at)
            source = self._needed_text(fields, "source", at)
            found.append(ThermalStep(above, clock, source, self._text(fields.get("derived", ""), (*at, "derived"))))
        return tuple(found)

    def _known(self, fields: Mapping[str, Any], keys: tuple[str, ...], at: tuple[Step, ...]) -> None:
        for key in fields:
            if key not in keys:
                raise self._error(f"unknown key {key!r}", nearest(key, keys), *at, key)

    def _mapping(self, raw: Any, keys: tuple[str, ...], at: tuple[Step, ...], form: str) -> dict[str, Any]:
        if not isinstance(raw, dict):
            name = f"`{at[0]}`" if len(at) == 1 else f"item {int(at[1]) + 1} of `{at[0]}`"
            raise self._error(f"{name} is not a mapping", f"write it like {form}", *at)
        self._known(raw, keys, at)
        return raw

    def _list(self, raw: Any, key: str) -> list[Any]:
        if not isinstance(raw, list):
            raise self._error(f"`{key}` is not a list", f"begin each part with `- `, or write `{key}: {UNKNOWN}`", key)
        return raw

    def _quantity(
        self, quantity: type[Quantity], fields: Mapping[str, Any], key: str, at: tuple[Step, ...]
    ) -> Quantity:
        name = f"`{at[0]}`" if key == "value" else f"`{key}`"
        if key not in fields:
            raise self._error(f"{name} has no `{key}`", f"write it like {quantity.example}", *at)
        try:
            return quantity.parse(fields[key])
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            raise self._error(f"{name}: {what}", fix, *at, key) from None

    def _whole(self, fields: Mapping[str, Any], key: str, at: tuple[Step, ...]) -> int:
        value = self._quantity(Count, fields, key, at)
        if value < 1 or not value.is_integer():
            raise self._error(f"`{key}` cannot be {fields[key]!r}", "write a whole number", *at, key)
        return int(value)

    def _needed_text(self, fields: Mapping[str, Any], key: str, at: tuple[Step, ...]) -> str:
        if fields.get(key) in (None, ""):
            of = f" of `{at[0]}`" if at else ""
            fix = "say where it was read or measured" if key == "source" else "add it"
            raise self._error(f"the `{key}`{of} is missing", fix, *at, key)
        return self._text(fields[key], (*at, key))

    def _text(self, raw: Any, at: tuple[Step, ...]) -> str:
        if not isinstance(raw, str):
            raise self._error(f"`{at[-1]}` is not text", "write it in quotes", *at)
        return raw

    def _conditions(self, fields: Mapping[str, Any], at: tuple[Step, ...]) -> dict[str, str]:
        raw = fields.get("conditions", {})
        if not isinstance(raw, dict) or any(isinstance(value, (dict, list, type(None))) for value in raw.values()):
            raise self._error(
                "`conditions` are not names with a value each",
                "write them like {precision: double, threads: 4}",
                *at,
                "conditions",
            )
        return {key: str(value) for key, value in raw.items()}

    def _error(self, what: str, fix: str, *steps: Step) -> DeviceError:
        return DeviceError(what, where=self._document.where(*steps), fix=fix)
