"""What a data set is: something that can be put into a folder once, and read from there by every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator.training.layout import Array

Part = Literal["train", "test"]


@dataclass(frozen=True)
class Samples:
    """Images `[n, height, width]` (uint8, or anything that converts to fp32) and class numbers `[n]`, row by row.

    They may be memory-mapped: a node reads only what its batches touch.
    """

    images: Array
    labels: Array


class Dataset(Protocol):
    """Made by `()`. `folder` is the data set's own; `fetch` may write there, `load` must not."""

    description: str

    def fetch(self, folder: Path, say: Callable[[str], None]) -> None:
        """Make the folder complete, telling what happens line by line; quick if it is. Raises DataError."""
        ...

    def load(self, folder: Path, part: Part) -> Samples:
        """The samples of a part; raises DataError if they are not there or damaged."""
        ...

    def cached(self, folder: Path) -> int | None:
        """Bytes in the folder if it looks complete, else None (a quick look, no checksum)."""
        ...
