"""A data set of one's own: ten directions of stripes, made once and kept as two .npy files a part."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from emulator.core.errors import DataError
from emulator.core.rng import stream
from emulator.training.data.base import Part, Samples
from emulator.training.data.placing import workshop

COUNTS: dict[Part, int] = {"train": 2000, "test": 500}


class Stripes:
    """28x28 images of stripes under noise; the class is the direction."""

    description = "2,000 + 500 images of stripes in ten directions"

    def fetch(self, folder: Path, say: Callable[[str], None]) -> None:
        if self.cached(folder) is not None:
            return
        with workshop(folder, say) as directory:  # locked, and moved into place only when whole
            for part, count in COUNTS.items():
                for name, array in zip(("images", "labels"), make(part, count), strict=True):
                    np.save(directory / f"{part}-{name}.npy", array)
                    (directory / f"{part}-{name}.npy").replace(folder / f"{part}-{name}.npy")
        say(f"stripes: made in {folder}")

    def load(self, folder: Path, part: Part) -> Samples:
        try:
            images, labels = (np.load(folder / f"{part}-{name}.npy", mmap_mode="r") for name in ("images", "labels"))
        except (OSError, ValueError) as error:
            raise DataError(f"it cannot be read ({error})", where="stripes", fix="fetch it again") from None
        return Samples(images, labels)

    def cached(self, folder: Path) -> int | None:
        files = [folder / f"{part}-{name}.npy" for part in COUNTS for name in ("images", "labels")]
        return sum(file.stat().st_size for file in files) if all(file.is_file() for file in files) else None


def make(part: Part, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images fp32 and labels, the same each time."""
    rng = stream(0, "stripes", part)
    labels = rng.integers(0, 10, count)
    y, x = np.mgrid[0:28, 0:28]
    angle = np.pi * labels[:, None, None] / 10
    images = np.sin(0.8 * (x * np.cos(angle) + y * np.sin(angle))) + rng.normal(0, 0.5, (count, 28, 28))
    return images.astype(np.float32), labels.astype(np.uint8)
