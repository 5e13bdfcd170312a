"""Mini-batches of one worker: its samples in a new order each epoch, ready for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from emulator.training.data.base import Samples
    from emulator.training.layout import Array


class Batches:
    """An endless stream of batches; every sample once before any comes again."""

    def __init__(
        self, samples: Samples, indices: Array, batch: int, rng: np.random.Generator, standardize: bool
    ) -> None:
        self._samples = samples
        self._indices = indices
        self._batch = batch
        self._rng = rng
        self._standardize = standardize
        self._order = indices[:0]

    def next(self) -> tuple[Array, Array]:
        """Images fp32 `[batch, height, width]` and labels int64 `[batch]`."""
        while len(self._order) < self._batch:
            self._order = np.concatenate([self._order, self._rng.permutation(self._indices)])
        chosen, self._order = self._order[: self._batch], self._order[self._batch :]
        return prepared(self._samples.images[chosen], self._standardize), self._samples.labels[chosen].astype(np.int64)


def prepared(images: Array, standardize: bool) -> Array:
    """Images as fp32: each with mean 0 and deviation 1 (TensorFlow's per-image standardisation), or bytes / 255."""
    pixels: Array = images.astype(np.float32)
    if not standardize:
        return pixels / 255 if images.dtype == np.uint8 else pixels
    axes = tuple(range(1, pixels.ndim))
    # A blank image would divide by zero: the deviation is at least that of one grey level.
    least = 1 / np.sqrt(np.prod(pixels.shape[1:], dtype=np.float32))
    pixels -= pixels.mean(axes, keepdims=True)
    pixels /= np.maximum(pixels.std(axes, keepdims=True), least)
    return pixels
