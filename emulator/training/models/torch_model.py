"""Any torch module behind the Model protocol: its parameters are read from one flat vector.

Convolutions keep their weights and images channels last: on the CPU of the paper's CNN that takes a step from 12 to
8 ms and an evaluation of 10,000 images from 6 to 1.8 s (one core, turn by turn). The vector keeps torch's usual order.
The adapter is all of emu that knows torch's tensors. It uses as many threads as torch was told to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as nn

from emulator.core.errors import ExperimentError
from emulator.core.rng import stream
from emulator.training.layout import Layout

if TYPE_CHECKING:
    from emulator.training.layout import Array


class TorchModel:
    """A classifier: the module maps fp32 images `[batch, 1, height, width]` to logits; softmax cross-entropy.

    `multiply_adds` are those of one image's forward pass, `efficiency` the share of SGEMM's speed that a step
    reaches; both only for the simulator's clock. Raises ExperimentError for a module with buffers (batch
    normalisation), which no exchange would carry.
    """

    def __init__(self, module: torch.nn.Module, multiply_adds: float, efficiency: float = 0.35) -> None:
        if any(True for _ in module.buffers()):
            raise ExperimentError(
                "the module has buffers, which are not parameters and would not travel",
                where=type(self).__name__,
                fix="use layers without running statistics, like GroupNorm for BatchNorm",
            )
        self._module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._multiply_adds = multiply_adds
        self._efficiency = efficiency
        named = dict(module.named_parameters())
        self._variables = list(named.values())
        self.layout = Layout(tuple(tuple(variable.shape) for variable in self._variables), tuple(named))
        # torch refuses to look at what arrived in a message, which is read-only.
        self._flat = np.zeros(self.layout.size, np.float32)
        self._views = [torch.from_numpy(view) for view in self.layout.split(self._flat)]

    def initial(self, seed: int) -> Array:
        """Weights normal with variance 2 / inputs (He et al., arXiv 1502.01852), vectors zero."""
        rng = stream(seed, "initial")
        parts = []
        for shape, size in zip(self.layout.shapes, self.layout.sizes, strict=True):
            scale = np.sqrt(2 * shape[0] / size) if len(shape) > 1 else 0.0
            parts.append(scale * rng.standard_normal(size))
        return np.concatenate(parts).astype(np.float32)

    def gradients(self, parameters: Array, images: Array, labels: Array) -> tuple[list[Array], float]:
        self._load(parameters)
        loss = nn.cross_entropy(self._logits(images), torch.from_numpy(labels))
        gradients = torch.autograd.grad(loss, self._variables)
        return [np.ascontiguousarray(gradient.numpy()) for gradient in gradients], loss.item()

    def evaluate(self, parameters: Array, images: Array, labels: Array) -> tuple[int, float]:
        self._load(parameters)
        with torch.inference_mode():
            logits, truth = self._logits(images), torch.from_numpy(labels)
            right = int((logits.argmax(1) == truth).sum())
            return right, nn.cross_entropy(logits, truth, reduction="sum").item()

    def flops(self, batch: int) -> float:
        # Backward costs twice the forward pass: one product for the inputs, one for the weights.
        return 2 * self._multiply_adds * 3 * batch / self._efficiency

    def _load(self, parameters: Array) -> None:
        np.copyto(self._flat, parameters)
        with torch.no_grad():
            for variable, values in zip(self._variables, self._views, strict=True):
                variable.copy_(values)

    def _logits(self, images: Array) -> torch.Tensor:
        pixels = torch.from_numpy(images).unsqueeze(1).to(memory_format=torch.channels_last)
        logits: torch.Tensor = self._module(pixels)
        return logits
