"""The CNN of Hardy et al. (arXiv 1702.04683) for 28x28 grey images, in torch: 421,642 parameters.

conv 3x3x32 SAME ReLU, max-pool 2, conv 3x3x64 SAME ReLU, max-pool 2, dense 128 ReLU, dense 10; softmax cross-entropy.
Weights start as a truncated normal of sd 0.1, biases as 0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from emulator.core.rng import stream
from emulator.training.models.torch_model import TorchModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.training.layout import Array

# Of one image's forward pass: conv1, conv2, dense1, dense2.
MULTIPLY_ADDS = 28 * 28 * 32 * 9 + 14 * 14 * 64 * 32 * 9 + 3136 * 128 + 128 * 10
# Share of SGEMM's speed that a step of batch 10 reaches on one core; 0.28 to 0.49 was seen, turn by turn with SGEMM,
# the lower the busier the host's other core (tests/bench/training.py).
EFFICIENCY = 0.35


class MnistCnn(TorchModel):
    """The paper's CNN with the paper's initial values; takes no options."""

    def __init__(self, _options: Mapping[str, Any]) -> None:
        module = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(3136, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )
        super().__init__(module, MULTIPLY_ADDS, EFFICIENCY)

    def initial(self, seed: int) -> Array:
        rng = stream(seed, "mnist-cnn", "initial")
        parts = [
            np.full(size, 0.1) if len(shape) == 1 else _truncated_normal(rng, size)
            for shape, size in zip(self.layout.shapes, self.layout.sizes, strict=True)
        ]
        return np.concatenate(parts).astype(np.float32)


def _truncated_normal(rng: np.random.Generator, size: int, sd: float = 0.1) -> Array:
    """Normal values, drawn again where they lie beyond two standard deviations (as TensorFlow's initialiser)."""
    values = rng.standard_normal(size)
    while (outside := np.flatnonzero(np.abs(values) > 2)).size:
        values[outside] = rng.standard_normal(outside.size)
    return sd * values
