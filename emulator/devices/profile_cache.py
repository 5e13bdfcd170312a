"""Read profiles, kept in the user's cache: reading the YAML of one takes 30 ms of each `emu up`, this under 1 ms."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from emulator.core.cache import user_cache
from emulator.devices.figures import KINDS, Figure, ThermalStep, TrainingFigure
from emulator.devices.profile_file import ProfileFile, read

if TYPE_CHECKING:
    from pathlib import Path

#: one more where what is kept, or what is checked before it is kept, changes
VERSION = 1


def load(path: Path) -> ProfileFile:
    """What the profile's file says. Raises DeviceError; a damaged or unwritable cache only costs the time."""
    try:
        state = path.stat()
    except OSError:
        return read(path)
    key = [VERSION, str(path), state.st_mtime_ns, state.st_size, *KINDS]
    kept = user_cache() / "devices" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:16]}.json"
    try:
        raw = json.loads(kept.read_text())
        if raw["key"] == key:
            return _restored(raw["profile"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    found = read(path)
    _keep(kept, {"key": key, "profile": asdict(found)})
    return found


def _restored(raw: dict[str, Any]) -> ProfileFile:
    figures = {key: None if one is None else Figure(**one) for key, one in raw["figures"].items()}
    training, thermal = raw["training"], raw["thermal"]
    return ProfileFile(
        **raw
        | {
            "figures": figures,
            "training": None if training is None else tuple(TrainingFigure(**one) for one in training),
            "thermal": None if thermal is None else tuple(ThermalStep(**one) for one in thermal),
        }
    )


def _keep(path: Path, value: dict[str, Any]) -> None:
    """Write whole or not at all."""
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps(value))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return
