"""Put files into a cache folder whole or not at all, one process at a time."""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import DataError
from emulator.core.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CHUNK = 1 << 20


@contextmanager
def workshop(folder: Path, say: Callable[[str], None]) -> Iterator[Path]:
    """A temporary directory beside `folder`, on its file system, under a lock on `folder`; gone afterwards.

    What an earlier process left there when it was killed is removed first. OSErrors become DataErrors. Where an
    error ends it before anything was put into a new `folder`, that and the lock's file are removed again.
    """
    prefix = f".{folder.name}-part-"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock_file = folder.parent / f".{folder.name}.lock"
        with locked(lock_file, lambda: say(f"{folder.name}: another emu is fetching it, waiting")) as lock:
            new = not folder.exists()
            try:
                folder.mkdir(exist_ok=True)
                for left_over in folder.parent.glob(f"{prefix}*"):
                    shutil.rmtree(left_over)
                with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as directory:
                    yield Path(directory)
            except BaseException:
                if new and _vanished(folder):
                    lock.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise translated(error, folder) from error


def translated(error: OSError, folder: Path) -> DataError:
    """The DataError for an OSError met while writing to `folder`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        fix = "free some space, or set EMU_DATA_DIR to a directory with more"
        return DataError("the disk is full", where=str(folder), fix=fix)
    return DataError(
        f"it cannot be written ({error.strerror or error})",
        where=str(folder),
        fix="set EMU_DATA_DIR to a directory that you may write to",
    )


def cached_bytes(folder: Path, sizes: Mapping[str, int]) -> int | None:
    """The bytes of all files if each is there with its size, else None; raises DataError if they cannot be seen."""
    try:
        whole = all((folder / name).is_file() and (folder / name).stat().st_size == sizes[name] for name in sizes)
    except OSError as error:
        raise unreadable(error, folder) from error
    return sum(sizes.values()) if whole else None


def unreadable(error: OSError, folder: Path) -> DataError:
    """The DataError for an OSError met while looking into `folder`."""
    fix = "make it readable for you, or set EMU_DATA_DIR to another directory"
    return DataError(f"it cannot be read ({error.strerror or error})", where=str(folder), fix=fix)


def md5(path: Path) -> str | None:
    """The MD5 digest of a file in hexadecimal, None if there is no file."""
    if not path.is_file():
        return None
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _vanished(folder: Path) -> bool:
    """Remove a folder if it is empty; whether it is gone."""
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()
