"""Test accuracy and loss of a model state, off the emulated links and outside the budget."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from emulator.training import data, models
from emulator.training.data.batches import prepared
from emulator.training.spec import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.layout import Array
    from emulator.training.models.base import Model

# Small enough for the activations to stay in a cache: 500 at a time take half as long again.
BATCH = 100


def evaluate(workload: Workload, data_directory: str, parameters: Sequence[Array]) -> tuple[float, float]:
    """(accuracy, mean loss) on the whole test set, for parameters given variable by variable or in one array.

    Uses the caller's number of threads. The loss may be infinite or NaN if training diverged. Raises DataError.
    """
    model, images, labels = _prepared(json.dumps(workload.__dict__, sort_keys=True), data_directory)
    flat = np.concatenate([np.ravel(array) for array in parameters]).astype(np.float32, copy=False)
    right, loss = 0, 0.0
    for start in range(0, len(labels), BATCH):
        part = slice(start, start + BATCH)
        with np.errstate(over="ignore", invalid="ignore"):  # A run that diverged is a result.
            part_right, part_loss = model.evaluate(flat, images[part], labels[part])
        right, loss = right + part_right, loss + part_loss
    return right / len(labels), loss / len(labels)


def variable_names(workload: Workload, data_directory: str) -> tuple[str, ...]:
    """What the workload's model calls its variables."""
    model, _, _ = _prepared(json.dumps(workload.__dict__, sort_keys=True), data_directory)
    return model.layout.names


@lru_cache(maxsize=2)
def _prepared(workload_json: str, data_directory: str) -> tuple[Model, Array, Array]:
    workload = Workload(**json.loads(workload_json))
    samples = data.load(workload.dataset, Path(data_directory) if data_directory else None, "test")
    images = prepared(np.asarray(samples.images), workload.standardize)
    return models.build(workload), images, np.asarray(samples.labels).astype(np.int64)
