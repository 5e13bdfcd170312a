"""No compression: every entry as fp32, 4 bytes each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.training.compressors.base import MalformedPush, Update, check_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.layout import Array, Layout
    from emulator.training.spec import Variant


class Dense:
    """One array: the flat gradient."""

    flops_per_parameter = 0.0

    def __init__(self, layout: Layout, _variant: Variant, _seed: int) -> None:
        self._layout = layout

    def compress(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        return (self._layout.join(gradients),)

    def decompress(self, arrays: Sequence[Array]) -> Update:
        if len(arrays) != 1 or arrays[0].shape != (self._layout.size,):
            raise MalformedPush(f"arrays of shapes {[array.shape for array in arrays]}, not one of {self._layout.size}")
        check_values(arrays[0])
        return Update(arrays[0])
