"""Images of MNIST's shape made from a fixed seed, so that tests and dry runs need no network; learnable, not hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.core.rng import stream
from emulator.training.data.base import Part, Samples
from emulator.training.data.idx import header, memory_map
from emulator.training.data.placing import cached_bytes, workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNTS: dict[Part, int] = {"train": 12_000, "test": 1_000}
FIX = "make it with `emu data fetch synthetic-mnist`"


class SyntheticMnist:
    """Ten blurred random patterns of 28x28, one a class, under strong noise."""

    description = "12,000 + 1,000 noisy patterns of MNIST's shape, made from a fixed seed"

    def fetch(self, folder: Path, say: Callable[[str], None]) -> None:
        if self.cached(folder) is not None:
            return
        with workshop(folder, say) as directory:
            for part, count in COUNTS.items():
                for name, data in zip(_names(part), _make(part, count), strict=True):
                    (directory / name).write_bytes(header(data.shape) + data.tobytes())
                    (directory / name).replace(folder / name)
            say(f"synthetic-mnist: made in {folder}")

    def load(self, folder: Path, part: Part) -> Samples:
        images, labels = _names(part)
        count = COUNTS[part]
        return Samples(memory_map(folder / images, (count, 28, 28), FIX), memory_map(folder / labels, (count,), FIX))

    def cached(self, folder: Path) -> int | None:
        names = [name for part in COUNTS for name in _names(part)]
        sizes = [size for count in COUNTS.values() for size in (16 + 784 * count, 8 + count)]
        return cached_bytes(folder, dict(zip(names, sizes, strict=True)))


def _names(part: Part) -> tuple[str, str]:
    return f"{part}-images", f"{part}-labels"


def _make(part: Part, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = stream(0, "synthetic-mnist", part)
    patterns = (
        stream(0, "synthetic-mnist", "patterns").integers(0, 160, (10, 7, 7)).repeat(4, 1).repeat(4, 2).astype(np.int16)
    )
    labels = rng.integers(0, 10, count)
    # The sum of three uniform numbers is near enough to normal, and the same integers on every machine.
    noise = rng.integers(-70, 71, (3, count, 28, 28), dtype=np.int16).sum(0)
    return np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8), labels.astype(np.uint8)
