"""Which lab a command means, and the option for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.core.clock import TimeScale
    from emulator.lab import Lab

LAB = typer.Option(None, "--lab", "-l", help="Name of the lab; may be left out while only one is up.")

ARCH = (
    "Processor of the programs of machines that name no `arch`: arm64 (only of ARM boards; QEMU runs them on another "
    "host) or amd64. Needs --runtime docker unless it is this host's."
)

TIME_SCALE = (
    "Real seconds for one emulated second, or auto: the fastest that this host carries with head-room (default: as "
    "the file says)."
)

POSITIONAL = typer.Argument(
    None, metavar="[LAB]", help="Name of the lab, as with --lab; may be left out while only one is up."
)


def path(text: str) -> Path:
    """A path of the command line; the empty one, which would stand for this directory, is refused."""
    from pathlib import Path

    from emulator.core.errors import UsageError

    if not text:
        raise UsageError("a file's name is empty", fix="name a topology file, e.g. topologies/wan-10.yaml")
    return Path(text)


def scale(text: str) -> TimeScale:
    """A time scale of the command line, not yet checked for its range. Raises UsageError for a word that is none."""
    from emulator.core.clock import AUTO
    from emulator.core.errors import UsageError

    if text == AUTO:
        return text
    try:
        return float(text)
    except ValueError:
        fix = f"write {AUTO}, or a number like 0.2"
        raise UsageError(f"{text!r} is not a time scale", where="--time-scale", fix=fix) from None


def either(positional: str | None, option: str | None) -> str | None:
    """The lab of a command that takes it with and without --lab. Raises UsageError for two different ones."""
    from emulator.core.errors import UsageError

    if positional is not None and option is not None and positional != option:
        raise UsageError(f"two labs are named, {positional!r} and {option!r}", fix="give one of the two")
    return option if positional is None else positional


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
