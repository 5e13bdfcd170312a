"""The CNN of Hardy et al. (arXiv 1702.04683) for 28x28 grey images, in torch: 421,642 parameters.

conv 3x3x32 SAME ReLU, max-pool 2, conv 3x3x64 SAME ReLU, max-pool 2, dense 128 ReLU, dense 10; softmax cross-entropy.
Weights start as a truncated normal of sd 0.1, biases as 0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as nn

from emulator.core.rng import stream
from emulator.training.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.training.layout import Array

# Multiply-adds of one image's forward pass: conv1, conv2, dense1, dense2.
MULTIPLY_ADDS = 28 * 28 * 32 * 9 + 14 * 14 * 64 * 32 * 9 + 3136 * 128 + 128 * 10
# Share of SGEMM's speed that a step of batch 10 reaches on one core; 0.28 to 0.49 was seen, turn by turn with SGEMM,
# the lower the busier the host's other core (tests/bench/training.py).
EFFICIENCY = 0.35


class MnistCnn:
    """The paper's CNN behind the Model protocol. Uses as many threads as torch was told to."""

    layout = Layout(((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (128, 3136), (128,), (10, 128), (10,)))

    def __init__(self, _options: Mapping[str, Any]) -> None:
        self._flat = np.zeros(self.layout.size, np.float32)
        # Leaves that share memory with the flat vector: loading parameters is one copy.
        self._variables = [torch.from_numpy(view).requires_grad_() for view in self.layout.split(self._flat)]

    def initial(self, seed: int) -> Array:
        rng = stream(seed, "mnist-cnn", "initial")
        parts = [
            np.full(size, 0.1) if len(shape) == 1 else _truncated_normal(rng, size)
            for shape, size in zip(self.layout.shapes, self.layout.sizes, strict=True)
        ]
        return np.concatenate(parts).astype(np.float32)

    def gradients(self, parameters: Array, images: Array, labels: Array) -> tuple[list[Array], float]:
        np.copyto(self._flat, parameters)
        loss = nn.cross_entropy(self._forward(images), torch.from_numpy(labels))
        return [gradient.numpy() for gradient in torch.autograd.grad(loss, self._variables)], loss.item()

    def evaluate(self, parameters: Array, images: Array, labels: Array) -> tuple[int, float]:
        np.copyto(self._flat, parameters)
        with torch.inference_mode():
            logits, truth = self._forward(images), torch.from_numpy(labels)
            right = int((logits.argmax(1) == truth).sum())
            return right, nn.cross_entropy(logits, truth, reduction="sum").item()

    def flops(self, batch: int) -> float:
        # Backward costs twice the forward pass: one product for the inputs, one for the weights.
        return 2 * MULTIPLY_ADDS * 3 * batch / EFFICIENCY

    def _forward(self, images: Array) -> torch.Tensor:
        conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4 = self._variables
        x = torch.from_numpy(images).unsqueeze(1)
        x = nn.max_pool2d(nn.relu(nn.conv2d(x, conv1, bias1, padding=1)), 2)
        x = nn.max_pool2d(nn.relu(nn.conv2d(x, conv2, bias2, padding=1)), 2)
        x = nn.relu(nn.linear(x.flatten(1), dense1, bias3))
        return nn.linear(x, dense2, bias4)


def _truncated_normal(rng: np.random.Generator, size: int, sd: float = 0.1) -> Array:
    """Normal values, drawn again where they lie beyond two standard deviations (as TensorFlow's initialiser)."""
    values = rng.standard_normal(size)
    while (outside := np.flatnonzero(np.abs(values) > 2)).size:
        values[outside] = rng.standard_normal(outside.size)
    return sd * values
