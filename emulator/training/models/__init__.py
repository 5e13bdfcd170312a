"""Models: what is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from emulator.training import plugins

if TYPE_CHECKING:
    from emulator.training.models.base import Model
    from emulator.training.spec import Workload

NAMES = {
    "mnist-cnn": "emulator.training.models.mnist_cnn:MnistCnn",
    "softmax": "emulator.training.models.softmax:Softmax",
}


def build(workload: Workload) -> Model:
    """The model of a workload; raises ExperimentError for a name that is not known."""
    return cast("Model", plugins.find("models", workload.model, NAMES)(workload.options))
