"""A model of one's own: a small multi-layer perceptron in torch."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from emulator.training.models.torch_model import TorchModel


class Perceptron(TorchModel):
    """784 pixels, one hidden layer, 10 classes. Option `hidden` is the layer's width."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        hidden = int(options.get("hidden", 32))
        module = nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        super().__init__(module, multiply_adds=784 * hidden + hidden * 10)
