"""Multinomial logistic regression in numpy: 7,850 parameters, no framework. For examples, tests and dry runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.training.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.training.layout import Array


class Softmax:
    """One dense layer from 28x28 pixels to 10 classes; starts at zero."""

    layout = Layout(((784, 10), (10,)), ("weight", "bias"))

    def __init__(self, _options: Mapping[str, Any]) -> None:
        pass

    def initial(self, _seed: int) -> Array:
        return np.zeros(self.layout.size, np.float32)

    def gradients(self, parameters: Array, images: Array, labels: Array) -> tuple[list[Array], float]:
        inputs = images.reshape(len(images), -1)
        log_likelihood = self._log_softmax(parameters, inputs)
        rows = np.arange(len(labels))
        error = np.exp(log_likelihood)
        error[rows, labels] -= 1
        error /= len(labels)
        return [inputs.T @ error, error.sum(0)], float(-log_likelihood[rows, labels].mean())

    def evaluate(self, parameters: Array, images: Array, labels: Array) -> tuple[int, float]:
        log_likelihood = self._log_softmax(parameters, images.reshape(len(images), -1))
        right = int((log_likelihood.argmax(1) == labels).sum())
        return right, float(-log_likelihood[np.arange(len(labels)), labels].sum())

    def flops(self, batch: int) -> float:
        return 4 * 784 * 10 * batch

    def _log_softmax(self, parameters: Array, inputs: Array) -> Array:
        weights, bias = self.layout.split(parameters)
        logits: Array = inputs @ weights + bias
        logits -= logits.max(1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(1, keepdims=True))
        return logits
