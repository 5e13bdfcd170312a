"""What a compressor is: gradients to the arrays that travel, and back to (values, indices)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.layout import Array, Layout


class MalformedPush(ValueError):
    """What arrived cannot be a push of this model: wrong arrays, an index out of range, a value that is no number."""


@dataclass(frozen=True)
class Update:
    """Values to apply. `indices` are increasing positions in the flat vector of parameters; None = all of them."""

    values: Array
    indices: Array | None = None


class Compressor(Protocol):
    """Made by `(layout, variant, seed)`; one on each worker and one on the server. It may keep state of its own.

    `flops_per_parameter` is what the simulator charges a worker for `compress`, in SGEMM-equivalent operations.
    """

    flops_per_parameter: float

    def compress(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays to send for one gradient, given variable by variable; nothing but they travels."""
        ...

    def decompress(self, arrays: Sequence[Array]) -> Update:
        """What a peer's `compress` gave; raises MalformedPush for anything else."""
        ...


def check_values(values: Array) -> None:
    """Raises MalformedPush unless `values` is a vector of finite fp32 numbers."""
    import numpy as np

    if values.dtype != np.float32 or values.ndim != 1:
        raise MalformedPush(f"values are {values.dtype} of {values.ndim} dimensions, not a vector of float32")
    if not np.isfinite(values).all():
        raise MalformedPush("a value is not a finite number")


def check_indices(indices: Array, count: int, layout: Layout) -> None:
    """Raises MalformedPush unless `indices` are `count` increasing positions of the flat vector."""
    import numpy as np

    if indices.dtype != np.int32 or indices.shape != (count,):
        raise MalformedPush(f"indices are {indices.dtype} of shape {indices.shape}, not {count} int32")
    if count and (indices[0] < 0 or indices[-1] >= layout.size or (indices[1:] <= indices[:-1]).any()):
        raise MalformedPush(f"indices are not increasing positions below {layout.size}")
