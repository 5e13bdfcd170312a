"""Link drivers: `choose` one by trying, or get one by name with `driver`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import HostError, UsageError

if TYPE_CHECKING:
    from emulator.links.base import LinkDriver

#: in the order in which they are tried; `fake` carries no packets and is never chosen by itself
REAL = ("netem", "relay")
NAMES = (*REAL, "fake")


def driver(name: str) -> LinkDriver:
    """The driver of that name, not tried; raises UsageError for an unknown one."""
    if name == "netem":
        from emulator.links.netem import NetemDriver

        return NetemDriver()
    if name == "relay":
        from emulator.links.relay.driver import RelayDriver

        return RelayDriver()
    if name == "fake":
        from emulator.links.fake import FakeDriver

        return FakeDriver()
    raise UsageError(f"no link driver is named {name!r}", where="--link-driver", fix=f"use one of {', '.join(NAMES)}")


def choose(name: str | None = None) -> LinkDriver:
    """The named driver, or the first real one that works here. Raises UsageError or HostError with the reasons."""
    reasons = []
    for candidate in (name,) if name else REAL:
        found = driver(candidate)
        problems = found.probe()
        if not problems:
            return found
        reasons += [f"{candidate}: {problem}" for problem in problems]
    raise HostError("no link driver works here", where=" | ".join(reasons), fix="see `emu doctor`")
