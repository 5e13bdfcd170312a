"""Counting the operators of a step, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from emulator.core.errors import ExperimentError
from emulator.devices import operators
from emulator.devices.workload import Operator, Step
from emulator.training import models
from emulator.training.spec import Workload


def _of(step: Step, kind: str, phase: str | None = None) -> list[Operator]:
    return [one for one in step.operators if one.kind == kind and phase in (None, one.phase)]


def _gradients(name: str, batch: int) -> Step:
    model = models.build(Workload(model=name))
    images, labels = np.zeros((batch, 28, 28), np.float32), np.zeros(batch, np.int64)
    return operators.run(name, lambda: model.gradients(model.initial(0), images, labels), batch, 28, model.layout.size)


def test_the_mnist_cnn_has_the_products_counted_by_hand() -> None:
    convolutions = 28 * 28 * 32 * 9, 14 * 14 * 64 * 32 * 9
    dense = 3136 * 128, 128 * 10
    # Backward does each product twice over, but that of the first layer's input, whose gradient nobody asks for.
    multiply_adds = 3 * (sum(convolutions) + sum(dense)) - convolutions[0]
    step = _gradients("mnist-cnn", 10)
    assert step.flops("matrix") == 2 * 10 * multiply_adds
    assert step.flops("depthwise") == 0


def test_a_depthwise_convolution_is_told_from_a_dense_and_a_grouped_one() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 4, 1, bias=False), nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False),
        nn.Conv2d(4, 8, 3, padding=1, groups=2, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    step = operators.step("mine", module, batch=2, image=8)
    pixels = 2 * 8 * 8
    assert step.flops("depthwise") == 3 * 2 * pixels * 4 * 9
    assert step.flops("matrix") == 2 * pixels * (2 * 4 * 3 + 3 * 8 * 2 * 9)
    (depthwise,) = _of(step, "depthwise", "forward")
    assert depthwise.unfolded == 4 * pixels * 4 * 9


def test_the_bytes_of_a_convolution_are_its_three_tensors() -> None:
    module = nn.Sequential(nn.Conv2d(3, 5, 1, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    (forward,) = _of(operators.step("mine", module, batch=2, image=8), "matrix", "forward")
    assert forward.bytes == 4 * (2 * 3 * 64 + 5 * 3 + 2 * 5 * 64)
    assert forward.unfolded == 0  # a 1 x 1 window is a matrix already


def test_tiles_are_those_that_cover_the_output() -> None:
    module = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    (forward,) = _of(operators.step("mine", module, batch=16, image=14, channels=2), "matrix", "forward")
    tiles = 16 * 3 * 3  # 14 pixels by 6 a tile
    assert forward.tiles == 2 * 4 * 64 * (tiles * (2 + 3) + 3 * 2)
    assert forward.tile_flops == 2 * 64 * tiles * 3 * 2
    strided = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert all(one.tiles == 0 for one in operators.step("mine", strided, 16, 14, channels=2).operators)


def test_twice_the_batch_is_twice_the_work_of_all_but_the_weights() -> None:
    small, large = _gradients("mnist-cnn", 4), _gradients("mnist-cnn", 8)
    assert large.flops("matrix") == 2 * small.flops("matrix")
    assert large.launches == small.launches


def test_the_update_goes_through_every_parameter() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 10))
    step = operators.step("mine", module, batch=2, image=8)
    assert step.parameters == 1930
    assert sum(one.bytes for one in _of(step, "pass", "update")) >= 4 * 3 * step.parameters


def test_a_model_without_torch_is_refused_with_the_remedy() -> None:
    with pytest.raises(ExperimentError, match="'softmax': it runs no operator of torch") as caught:
        _gradients("softmax", 4)
    assert "linpack" in caught.value.fix


def test_a_module_that_cannot_run_is_refused_with_the_reason() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images if images.sum().item() else self.weight  # it looks at values

    with pytest.raises(ExperimentError, match="'odd': it cannot be counted"):
        operators.step("odd", Odd(), batch=2, image=8)
