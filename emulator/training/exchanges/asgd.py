"""Asynchronous SGD with a parameter server: x <- x - lr * g, push by push, however old (Dean et al., NIPS 2012)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.training.compressors.base import MalformedPush
from emulator.training.exchanges.base import Applied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.compressors.base import Compressor, Update
    from emulator.training.layout import Array, Layout
    from emulator.training.spec import Variant


class Asgd:
    """Applies every push at the same learning rate."""

    default_compressor = "dense"
    # Measured: 0.29 ms to decode and apply 421,642 entries where SGEMM runs at 90 GFLOPS (tests/bench/training.py).
    apply_flops_per_parameter = 60.0

    def __init__(self, layout: Layout, variant: Variant, _seed: int, compressor: Compressor) -> None:
        self.learning_rate = np.float32(variant.learning_rate)
        self.select_flops = compressor.flops_per_parameter * layout.size
        self.apply_flops = self.apply_flops_per_parameter * layout.size
        self._compressor = compressor
        self._iteration = 0

    @property
    def iteration(self) -> int:
        return self._iteration

    def select(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        return self._compressor.compress(gradients)

    def apply(self, parameters: Array, arrays: Sequence[Array], pulled: int) -> Applied:
        if not 0 <= pulled <= self._iteration:
            raise MalformedPush(f"computed from iteration {pulled}, but the model is at {self._iteration}")
        update = self._compressor.decompress(arrays)
        # A run that diverges overflows: that is its result, and not worth a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            applied = self._step(parameters, update, pulled)
        self._iteration += 1
        return applied

    def forget(self, oldest: int) -> None:
        """Nothing is remembered."""

    def _step(self, parameters: Array, update: Update, pulled: int) -> Applied:
        if update.indices is None:
            parameters -= self.learning_rate * update.values
        else:
            parameters[update.indices] -= self.learning_rate * update.values
        return Applied(self._iteration - pulled)
