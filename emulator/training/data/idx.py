"""The IDX format of MNIST: 0, 0, type (8 = uint8), dimensions; a big-endian uint32 a dimension; then the bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from emulator.core.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.training.layout import Array


def header(shape: tuple[int, ...]) -> bytes:
    """The bytes before a uint8 array of that shape."""
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)


def memory_map(path: Path, shape: tuple[int, ...], fix: str) -> Array:
    """The uint8 array of a file, mapped read-only; raises DataError with the remedy `fix` if it is not of `shape`."""
    import numpy as np

    expected = header(shape)
    try:
        with path.open("rb") as file:
            start = file.read(len(expected))
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"it cannot be read ({error.strerror})", where=str(path), fix=fix) from None
    if start != expected or size != len(expected) + int(np.prod(shape)):
        raise DataError("it is damaged or another file", where=str(path), fix=fix)
    return np.memmap(path, np.uint8, "r", offset=len(expected), shape=shape)
