"""A compressor of one's own: k entries chosen by a random stream that all nodes share, so only values travel."""

from collections.abc import Sequence

import numpy as np

from emulator.core.rng import stream
from emulator.training.compressors.base import MalformedPush, Update, check_values
from emulator.training.layout import Array, Layout
from emulator.training.spec import Variant


class RandomK:
    """Sends the share `variant.compression` of all entries, and a number that names which."""

    flops_per_parameter = 100.0

    def __init__(self, layout: Layout, variant: Variant, seed: int) -> None:
        self._size, self._seed, self._turn = layout.size, seed, 0
        self._k = max(1, int(layout.size * variant.compression))

    def compress(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        self._turn += 1
        flat = np.concatenate([gradient.ravel() for gradient in gradients])
        return flat[self._chosen(self._turn)], np.array([self._turn], np.int32)

    def decompress(self, arrays: Sequence[Array]) -> Update:
        if [array.shape for array in arrays] != [(self._k,), (1,)] or arrays[1].dtype != np.int32:
            raise MalformedPush(f"not {self._k} values and one int32")
        check_values(arrays[0])
        return Update(arrays[0], self._chosen(int(arrays[1][0])))

    def _chosen(self, turn: int) -> Array:
        rng = stream(self._seed, "random-k", turn)
        return np.sort(rng.choice(self._size, self._k, replace=False)).astype(np.int32)
