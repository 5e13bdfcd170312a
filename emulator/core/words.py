"""Words for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

#: what helps where a node's programs outgrow its memory
MORE_MEMORY = "give it more `memory`, or its program less to do (a smaller batch, a smaller model)"


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 link, 2 links."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def mebibytes(number: float) -> str:
    """Bytes as whole MiB: 4096 MiB."""
    return f"{Size(number) / 2**20:.0f} MiB"


def out_of_memory(node: str, kills: int, peak: float, cap: float) -> str:
    """That the kernel ended programs of a node at its cap. `peak` is the most it held, `cap` all it may, in bytes."""
    ended = counted(kills, "program")
    held = f"it held up to {mebibytes(peak)} of {mebibytes(cap)}"
    return f"{node} ran out of memory: the kernel ended {ended} there ({held})"
