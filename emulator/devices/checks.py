"""What a device's figures cannot be together: units gone wrong, and figures that contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from emulator.devices.figures import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.devices.figures import Figure, ThermalStep

#: no core does more in a cycle: two 512-bit multiply-adds are 64 single-precision operations, 32 double ones
MOST_FLOPS_A_CYCLE = {"hpl": 32, "sgemm": 64}
#: a benchmark's scatter: all cores together may come out this much above one core times their number
SCATTER = 1.1
LEAST_MEMORY = 16 * 2**20
#: figures of the whole device, which mean nothing without its cores
_WHOLE = ("hpl", "sgemm", "stream_copy", "stream_scale", "stream_add", "stream_triad", "sevenzip_all")
#: the first cannot be above the second
_ORDER = (
    ("l1d", "l2"),
    ("l1i", "l2"),
    ("l2", "l3"),
    ("sevenzip_one", "sevenzip_all"),
    ("nic_tcp", "nic"),
    ("storage_read_4k", "storage_read"),
    ("storage_write_4k", "storage_write"),
    ("idle", "loaded"),
    ("idle", "hpl_power"),
)


class Contradiction(NamedTuple):
    """A sentence, its remedy, and the figure at which it is told."""

    key: str
    what: str
    fix: str


def contradictions(figures: Mapping[str, Figure], thermal: tuple[ThermalStep, ...]) -> Iterator[Contradiction]:
    """All that cannot be, in the order of the figures.

    STREAM above memcpy is none: STREAM counts the bytes read and those written, memcpy each byte once, and caches
    and the number of threads differ.
    """
    value = {key: figure.value for key, figure in figures.items()}
    cores, clock = value.get("cores"), value.get("clock")
    if value.get("memory", LEAST_MEMORY) < LEAST_MEMORY:
        what = f"{text('memory', value['memory'])} of memory are too little to run a program"
        yield Contradiction("memory", what, "check its unit")
    whole = next((key for key in _WHOLE if key in value), None)
    if cores is None and whole:
        yield Contradiction(whole, f"`{whole}` is of all cores, and `cores` is not known", "add `cores`")
    for key, most in MOST_FLOPS_A_CYCLE.items():
        if key in value and cores and clock and value[key] > cores * clock * most:
            what = (
                f"`{key}` of {text(key, value[key])} is more than {cores:g} cores at {text('clock', clock)} "
                f"can do ({most} operations a cycle)"
            )
            yield Contradiction(key, what, "check its unit")
    for low, high in _ORDER:
        if low in value and high in value and value[low] > value[high]:
            what = f"`{low}` ({text(low, value[low])}) is above `{high}` ({text(high, value[high])})"
            yield Contradiction(low, what, "check both, and their units")
    one, together = value.get("sevenzip_one"), value.get("sevenzip_all")
    if one and together and cores and together > one * cores * SCATTER:
        what = f"`sevenzip_all` ({text('sevenzip_all', together)}) is more than {cores:g} times `sevenzip_one`"
        yield Contradiction("sevenzip_all", what, "check both")
    yield from _thermal(thermal, clock)


def _thermal(steps: tuple[ThermalStep, ...], clock: float | None) -> Iterator[Contradiction]:
    hotter = [step.above for step in steps if step.above is not None]
    slower = [step.clock for step in steps if step.clock is not None]
    if hotter != sorted(hotter) or slower != sorted(slower, reverse=True):
        yield Contradiction(
            "thermal", "the thermal steps are out of order", "order them from cool to hot, clock falling"
        )
    if clock and slower and slower[0] > clock:
        what = f"a thermal step at {text('clock', slower[0])} is above the device's clock of {text('clock', clock)}"
        yield Contradiction("thermal", what, "check both")
