"""The reference models themselves, for measuring their steps and counting their operators; needs torch and pytorchcv.

`python -m emulator.devices.reference_models` writes the tables in `workloads/` anew. The product reads only those: the
package pytorchcv (pure Python, no torchvision) is for development. The public figures were measured with timm's models.
pytorchcv's have the same layers and widths; they differ in that

- activations are composed of plain operators (x * sigmoid(x) is two), where timm's are one: replaced here;
- mobilenetv3_large has no bias in its last convolution (5,481,752 parameters; with its 1,280, as in timm, 5,483,032).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from emulator.devices.workload import DIRECTORY

BATCH, IMAGE, CLASSES = 16, 224, 1000
#: emu's names and pytorchcv's; timm's `mnasnet_100` is the paper's B1, without squeeze and excitation
MODELS = {
    "resnet18": "resnet18",
    "resnet34": "resnet34",
    "mobilenetv3_large": "mobilenetv3_large_w1",
    "efficientnet_b0": "efficientnet_b0",
    "mnasnet": "mnasnet_b1",
}
_ONE = {"HSwish": nn.Hardswish, "Swish": nn.SiLU, "HSigmoid": nn.Hardsigmoid}


def build(name: str) -> nn.Module:
    """A reference model with random weights. Raises ImportError without pytorchcv, KeyError for another name."""
    from pytorchcv.model_provider import get_model

    return _with_one_operator(get_model(MODELS[name], pretrained=False))


def stepper(name: str) -> Any:
    """A function that does one training step, as the public figures were measured: SGD, all weights."""
    torch.manual_seed(0)
    model = build(name).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = torch.randn(BATCH, 3, IMAGE, IMAGE), torch.randint(CLASSES, (BATCH,))

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def _with_one_operator(module: nn.Module) -> nn.Module:
    """The module with its composed activations replaced by torch's own."""
    for name, child in module.named_children():
        kind = _ONE.get(type(child).__name__)
        if kind is None:
            _with_one_operator(child)
        else:
            setattr(module, name, kind())
    return module


def write() -> None:
    """Count every model and write its table."""
    from emulator.devices.operators import step

    for name in MODELS:
        (DIRECTORY / f"{name}.json").write_text(step(name, build(name), BATCH, IMAGE).to_json())


if __name__ == "__main__":
    write()
