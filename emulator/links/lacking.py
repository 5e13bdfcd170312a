"""Settings that a driver cannot make are refused before anything is set, never dropped in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.core.plan import Impairment

#: by name: whether an impairment asks for it, what it is called, and what to do without it
_SETTINGS: dict[str, tuple[Callable[[Impairment], bool], str, str]] = {
    "codel": (
        lambda one: one.codel is not None,
        "manage a queue by CoDel",
        "leave `aqm` out, or use a kernel that has sch_netem and sch_codel",
    ),
    "correlation": (
        lambda one: bool(one.jitter and one.spread and one.spread.correlation),
        "correlate the jitter of successive packets (the kernel takes a setting for it, which has no effect)",
        "leave the jitter's `correlation` out, or use --link-driver relay",
    ),
}


def check(cable: str, driver: str, lacking: Sequence[str], *ways: Impairment) -> None:
    """Raise LinkError where a direction asks for one of what the driver is `lacking`."""
    for name in lacking:
        asked, what, fix = _SETTINGS[name]
        if any(asked(way) for way in ways):
            raise LinkError(f"the link driver {driver} cannot {what}", where=f"link {cable}", fix=fix)
