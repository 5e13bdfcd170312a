"""Which entries each past update touched, as far back as a push may still ask; memory is bounded twice.

`prune` drops what no outstanding pull can need; a hard bound on bytes drops the oldest even if a worker that never
comes back holds it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from emulator.training.exchanges.base import StalePush

if TYPE_CHECKING:
    from emulator.training.layout import Array


class History:
    """Index sets of the updates `first` to `end - 1`; update n is the one that made iteration n + 1."""

    def __init__(self, size: int, max_bytes: int) -> None:
        self._touched: deque[Array | None] = deque()
        self._count = np.zeros(size, np.int32)
        self._bytes = 0
        self._max_bytes = max_bytes
        self.first = 0

    @property
    def end(self) -> int:
        """The iteration that the model is at."""
        return self.first + len(self._touched)

    def append(self, indices: Array | None) -> None:
        """Note an update that touched `indices` (distinct), None = all entries."""
        # A copy: the array may be a view into a whole received message.
        self._touched.append(None if indices is None else indices.astype(np.int32, copy=True))
        self._bytes += 0 if indices is None else 4 * indices.size
        while self._bytes > self._max_bytes:
            self._drop()

    def prune(self, oldest: int) -> None:
        """Forget what a push from iteration `oldest` or later cannot need."""
        while self.first < min(oldest, self.end):
            self._drop()

    def touches_since(self, pulled: int, indices: Array | None) -> Array:
        """How many of the updates from iteration `pulled` on touched each of `indices`.

        Raises StalePush if they are not all remembered.
        """
        if pulled < self.first:
            raise StalePush(f"iteration {pulled} is older than the history, which starts at {self.first}")
        recent = [self._touched[n] for n in range(pulled - self.first, len(self._touched))]
        everywhere = sum(touched is None for touched in recent)
        sparse = [touched for touched in recent if touched is not None]
        # The scratch vector is cleared entry by entry: wiping all of it would cost more than the count itself.
        for touched in sparse:
            self._count[touched] += 1
        sigma: Array = (self._count if indices is None else self._count[indices]) + np.int32(everywhere)
        for touched in sparse:
            self._count[touched] = 0
        return sigma

    def _drop(self) -> None:
        dropped = self._touched.popleft()
        self._bytes -= 0 if dropped is None else 4 * dropped.size
        self.first += 1
