"""One training step of a reference model (batch 16, 224 x 224 pixels): needs torch, and pytorchcv for the models."""

from __future__ import annotations

import torch

from emulator.devices.kernels.reading import Work
from emulator.devices.reference_models import BATCH, IMAGE, stepper


def prepare(model: str, threads: int) -> Work:
    """The step of that model. Raises ImportError without pytorchcv."""
    torch.set_num_threads(threads)
    return Work(stepper(model), 1, "step", f"{model}, batch {BATCH}, {IMAGE}x{IMAGE}")
