"""What a model is: a flat fp32 vector of parameters in, gradients out; the framework stays inside its adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from emulator.training.layout import Array, Layout


class Model(Protocol):
    """Made by `(options)`, the workload's. Inputs are fp32 images `[batch, height, width]`, labels int64 `[batch]`."""

    layout: Layout

    def initial(self, seed: int) -> Array:
        """The first parameters; the same for a seed on every engine and machine."""
        ...

    def gradients(self, parameters: Array, images: Array, labels: Array) -> tuple[list[Array], float]:
        """The gradient of the mean loss by variable, and the loss. Valid until the next call."""
        ...

    def evaluate(self, parameters: Array, images: Array, labels: Array) -> tuple[int, float]:
        """How many are right, and the sum of the losses."""
        ...

    def flops(self, batch: int) -> float:
        """What the simulator charges for `gradients`: the floating-point operations that SGEMM, at the device's
        measured speed, would do in the same time."""
        ...
