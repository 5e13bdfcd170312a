"""Put files into a cache folder whole or not at all, one process at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 20


@contextmanager
def workshop(folder: Path, say: Callable[[str], None]) -> Iterator[Path]:
    """A temporary directory beside `folder`, on its file system, under a lock on `folder`; gone afterwards.

    What an earlier process left there when it was killed is removed first. OSErrors become DataErrors.
    """
    prefix = f".{folder.name}-part-"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f".{folder.name}.lock").open("w") as lock:
            _acquire(lock.fileno(), folder, say)
            for left_over in folder.parent.glob(f"{prefix}*"):
                shutil.rmtree(left_over)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as directory:
                yield Path(directory)
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


def md5(path: Path) -> str | None:
    """The MD5 digest of a file in hexadecimal, None if there is no file."""
    if not path.is_file():
        return None
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _acquire(fd: int, folder: Path, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"{folder.name}: another emu is fetching it, waiting")
        fcntl.flock(fd, fcntl.LOCK_EX)
