"""Experiments by name: those that ship, and those in ./experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emulator.core.errors import ExperimentError
from emulator.core.shipped import shipped
from emulator.experiment.explain import nearest


def directories() -> list[Path]:
    """Where experiments lie, the nearest first."""
    places = [Path("experiments"), shipped("experiments")]
    return [place for place in places if place.is_dir()]


def known() -> dict[str, Path]:
    """All experiments by name; a file in ./experiments hides a shipped one of its name."""
    found: dict[str, Path] = {}
    for place in directories():
        for path in sorted(place.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return found


def find(text: str) -> Path:
    """The file of an experiment given by name or path; raises ExperimentError with the nearest name."""
    path = Path(text)
    if path.suffix in (".yaml", ".yml") or "/" in text:
        return path
    names = known()
    if text in names:
        return names[text]
    fix = nearest(text, names) if names else "give the path of an experiment file"
    raise ExperimentError(f"there is no experiment {text!r}", fix=f"{fix} (see --list)")


def described() -> list[dict[str, Any]]:
    """Name, file and description of every experiment that is known by name; a broken file says what is wrong."""
    from emulator.experiment import read
    from emulator.experiment.linpack import read as linpack

    found = []
    for name, path in sorted(known().items()):
        try:
            _, document = read.document_of(path)
            reader = linpack if read.kind_of(document) == read.LINPACK else read
            text = reader.read(path).model.description
        except ExperimentError as error:
            text = f"cannot be read: {error.what}"
        found.append({"name": name, "file": str(path), "description": text})
    return found
