"""Runtimes: `choose` gives the one asked for, or the one that works here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import HostError, UsageError

if TYPE_CHECKING:
    from emulator.runtimes.base import LabRuntime

NAMES = ("embedded", "fake")


def choose(name: str | None = None) -> LabRuntime:
    """The runtime `name`, or `embedded` when None.

    Raises UsageError for an unknown name and HostError when it cannot work here.
    """
    if name == "fake":
        from emulator.runtimes.fake import FakeRuntime

        return FakeRuntime()
    known(name or "embedded")
    from emulator.runtimes.embedded import EmbeddedRuntime

    runtime = EmbeddedRuntime()
    problems = runtime.probe()
    if problems:
        fact, _, fix = problems[0].partition("; ")
        raise HostError(
            f"nodes cannot be made here: {fact}",
            fix=f"{fix or 'see `emu doctor`'} (`emu experiment` has a fake runtime that needs nothing)",
        )
    return runtime


def known(name: str) -> None:
    """Raises UsageError where no runtime has that name."""
    if name not in NAMES:
        raise UsageError(f"{name!r} is not a runtime", where="--runtime", fix=f"use one of {', '.join(NAMES)}")
