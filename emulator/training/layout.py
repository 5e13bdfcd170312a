"""Where each variable of a model lies in one flat vector of all its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Layout:
    """The shapes of a model's variables, in order; each weight and each bias tensor is a variable of its own.

    `labels` are what the framework calls them, where it does.
    """

    shapes: tuple[tuple[int, ...], ...]
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each variable: its label, else "0", "1", ..."""
        return self.labels or tuple(str(number) for number in range(len(self.shapes)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Entries of each variable."""
        return tuple(prod(shape) for shape in self.shapes)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each variable starts in the flat vector."""
        return (0, *accumulate(self.sizes))[:-1]

    @property
    def size(self) -> int:
        """Entries of all variables."""
        return sum(self.sizes)

    def split(self, flat: Array) -> list[Array]:
        """The variables of a flat vector, in their shapes, as views."""
        parts = zip(self.shapes, self.sizes, self.offsets, strict=True)
        return [flat[start : start + size].reshape(shape) for shape, size, start in parts]

    def join(self, variables: Sequence[Array]) -> Array:
        """One flat vector of all variables (a copy)."""
        import numpy as np

        return np.concatenate([variable.ravel() for variable in variables])
