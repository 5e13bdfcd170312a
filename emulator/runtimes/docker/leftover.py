"""The mark in a lab's directory that an engine may hold containers of it: written before the first one is made, and
taken away once the engine was asked for them and had none left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import EmuError, HostError
from emulator.core.state_file import replace_state

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.core.lab_id import LabId


def expect(lab: LabId) -> None:
    """Containers are about to be made."""
    replace_state(_mark(lab), "")


def expected(lab: LabId) -> bool:
    """Whether there may be containers."""
    return _mark(lab).exists()


def forget(lab: LabId) -> None:
    """There are none."""
    _mark(lab).unlink(missing_ok=True)


def unreachable(lab: LabId, error: EmuError) -> HostError:
    """The error for containers that cannot be removed now, since the engine is away."""
    return HostError(
        f"the containers of lab {lab.name!r} could not be removed ({error.what})",
        fix=f"start the engine and run `emu down {lab.name}` again; if it is gone for good, remove {lab.directory}",
    )


def _mark(lab: LabId) -> Path:
    return lab.directory / "containers"
