"""How fast the storage under a folder is: one file there, written and read past the page cache, and removed after."""

from __future__ import annotations

import errno
import mmap
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: bytes of the file: more than a card's own buffer, seconds on a slow one
SIZE = 64 << 20
BLOCK, PAGE = 1 << 20, 4096
#: one step through the pages that comes to each once, far from the last: prime, so that it shares no factor with them
STRIDE = 7919


def measure(folder: Path, seconds: float) -> dict[str, float]:
    """Bytes a second by the names of a profile's figures: sequential in 1 MiB blocks over the whole file, random in
    4 KiB for about `seconds`, one request at a time. Written data is asked to reach the medium once, at the end, as
    `iozone -e -I` does, the usual benchmark of boards' cards: a request to do so for each would count as two.

    Raises OSError where the file cannot be made there, or the file system knows no O_DIRECT (EINVAL).
    """
    path = folder / f".emu-storage-{os.getpid()}"
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < 2 * SIZE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC, 0o600)
        try:
            return _measure(file, seconds)
        finally:
            os.close(file)
    finally:
        path.unlink(missing_ok=True)


def _measure(file: int, seconds: float) -> dict[str, float]:
    # An anonymous map begins at a page, as O_DIRECT wants it; random bytes, since some controllers compress.
    with mmap.mmap(-1, BLOCK) as block, mmap.mmap(-1, PAGE) as page:
        block.write(os.urandom(BLOCK))
        page.write(os.urandom(PAGE))
        start = time.perf_counter()
        for at in range(0, SIZE, BLOCK):
            os.pwritev(file, [block], at)
        os.fsync(file)
        written = time.perf_counter()
        for at in range(0, SIZE, BLOCK):
            os.preadv(file, [block], at)
        read = time.perf_counter()
        return {
            "storage_read": SIZE / (read - written),
            "storage_write": SIZE / (written - start),
            "storage_read_4k": _random(seconds, lambda at: os.preadv(file, [page], at)),
            "storage_write_4k": _random(seconds, lambda at: os.pwritev(file, [page], at), lambda: os.fsync(file)),
        }


def _random(seconds: float, access: Callable[[int], int], finish: Callable[[], None] = lambda: None) -> float:
    done, start = 0, time.perf_counter()
    now = start
    for at in _scattered():
        access(at)
        done += PAGE
        now = time.perf_counter()
        if now - start > seconds:
            break
    finish()
    return done / (time.perf_counter() - start)


def _scattered() -> Iterator[int]:
    """Offsets of the file's pages, each far from the last, over and over."""
    pages, at = SIZE // PAGE, 0
    while True:
        yield at * PAGE
        at = (at + STRIDE) % pages
