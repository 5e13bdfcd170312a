"""Which lab a command means, and the option for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from emulator.lab import Lab

LAB = typer.Option(None, "--lab", "-l", help="Name of the lab; may be left out while only one is up.")


def running() -> list[str]:
    """Names of the labs that have state here."""
    from emulator.core.lab_id import state_root
    from emulator.lab import state

    return state.names(state_root())


def name_of(given: str | None) -> str:
    """The lab that was named (a topology file's path names its lab too), or the only one. Raises LabError."""
    from pathlib import Path

    from emulator.core.errors import LabError

    if given is not None:
        if not given.endswith((".yaml", ".yml")):
            return given
        from emulator.devices.host import nominal
        from emulator.topology import load_plan

        return load_plan(Path(given), host=nominal()).name
    names = running()
    if len(names) == 1:
        return names[0]
    if not names:
        raise LabError("no lab is up", fix="start one with `emu up topologies/wan-10.yaml`")
    raise LabError(f"{len(names)} labs are up ({', '.join(names)})", fix="say which one with --lab NAME")


def pick(given: str | None) -> Lab:
    """The lab that was named, or the only one that is up. Raises LabError."""
    from emulator.lab import Lab

    return Lab.attach(name_of(given))
