"""Top-k by variable: the k = max(1, int(n * c)) entries of largest magnitude of each variable, the rest dropped.

The selection of Hardy et al. (arXiv 1702.04683) and of Aji and Heafield (arXiv 1704.05021). No residual is kept.
On the wire: one fp32 vector of values and one int32 vector of positions in the flat vector of all variables, 8 bytes
an entry. A position tells its variable, so no counts travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.core.errors import ExperimentError
from emulator.training.compressors.base import MalformedPush, Update, check_indices, check_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.layout import Array, Layout
    from emulator.training.spec import Variant


#: every which entry is sampled; a prime, so that rows and columns of a weight matrix are all met
_STRIDE = 61


def largest(variable: Array, k: int) -> Array:
    """Increasing positions of the k entries of largest magnitude; of equal ones the first are taken.

    A NaN counts as larger than any number, so that a broken gradient shows up at the server.
    """
    n = variable.size
    if k >= n:
        return np.arange(n, dtype=np.int32)
    magnitude = np.abs(variable.ravel())
    positions = _candidates(magnitude, k)
    found = magnitude[positions]
    if found.size < k:
        zeros = np.flatnonzero(magnitude == 0)[: k - found.size]
        positions = np.sort(np.concatenate((positions, zeros)))
    elif found.size > k:
        positions = positions[_largest_of(found, k)]
    return positions.astype(np.int32)


def _candidates(magnitude: Array, k: int) -> Array:
    """Increasing positions among which the k largest are; fewer than k only if all others are zeros.

    A lower bound from a sample leaves few of them to look at. Selecting from all takes up to 25 times as long: the
    gradient of a ReLU network is mostly zeros, and numpy's partition is slow where most are equal.
    """
    sample = magnitude[::_STRIDE]
    expected = k / _STRIDE
    rank = int(1.25 * expected + 4 * expected**0.5) + 4
    if rank < sample.size:
        bound = np.partition(sample, sample.size - rank)[sample.size - rank]
        if bound > 0:
            # ~(x < t) and not x >= t: a NaN must be kept.
            positions = np.flatnonzero(~(magnitude < bound))
            if positions.size >= k:
                return positions
    return np.flatnonzero(magnitude)


def _largest_of(magnitude: Array, k: int) -> Array:
    """Increasing positions of the k largest of more than k."""
    threshold = np.partition(magnitude, magnitude.size - k)[magnitude.size - k]
    if np.isnan(threshold):
        return np.flatnonzero(np.isnan(magnitude))[:k]
    positions = np.flatnonzero(~(magnitude < threshold))
    if positions.size > k:
        equal = np.flatnonzero(magnitude[positions] == threshold)
        positions = np.delete(positions, equal[k - positions.size :])
    return positions


class TopK:
    """Keeps the share `variant.compression` of each variable."""

    # Measured: 1.2 ms for 421,642 parameters where SGEMM runs at 90 GFLOPS (tests/bench/training.py).
    flops_per_parameter = 250.0

    def __init__(self, layout: Layout, variant: Variant, _seed: int) -> None:
        if not 0 < variant.compression <= 1:
            raise ExperimentError(
                f"compression {variant.compression} is not a share of the gradient",
                where=f"variant {variant.name}",
                fix="give a number above 0 and at most 1, like 0.01",
            )
        self._layout = layout
        self._counts = tuple(max(1, int(n * variant.compression)) for n in layout.sizes)

    def compress(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        values, indices = [], []
        for gradient, k, offset in zip(gradients, self._counts, self._layout.offsets, strict=True):
            chosen = largest(gradient, k)
            values.append(gradient.ravel()[chosen])
            indices.append(chosen + np.int32(offset))
        return np.concatenate(values), np.concatenate(indices)

    def decompress(self, arrays: Sequence[Array]) -> Update:
        if len(arrays) != 2:
            raise MalformedPush(f"{len(arrays)} arrays, not values and indices")
        values, indices = arrays
        check_values(values)
        check_indices(indices, values.size, self._layout)
        return Update(values, indices)
