"""A lock of a whole command, by a file: it goes with its holder, however that ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def locked(path: Path, waits: Callable[[], None]) -> Iterator[Path]:
    """Hold the lock on the file `path`, which is made; `waits` is called where another process has it.

    The holder may remove the file. Raises OSError when it cannot be made.
    """
    while True:
        with path.open("w") as lock:
            try:
                fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
            # Its last holder may have removed it, and others lock a new one by now.
            if _is(path, lock.fileno()):
                yield path
                return


def _is(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
