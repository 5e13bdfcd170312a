"""The user's cache of what images are made of: an entry is there whole or not at all."""

from __future__ import annotations

import errno
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.cache import user_cache
from emulator.core.errors import HostError
from emulator.core.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def directory() -> Path:
    """Where the entries lie. Not made by this call."""
    return user_cache() / "images"


def made(entry: Path, make: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    """`entry`, where it is missing made by `make(partial)`, in one process at a time.

    `partial` has an empty directory of its own, which `make` may use as well; it is removed afterwards, or by the
    next process that comes here, should this one be killed. Raises HostError when the disk does not take it.
    """
    if entry.exists():
        return entry
    prefix = f".{entry.name}-part-"
    with writing(entry.parent):
        entry.parent.mkdir(parents=True, exist_ok=True)
        busy = f"{entry.name}: another emu is making it, waiting"
        with locked(entry.parent / f".{entry.name}.lock", lambda: say(busy)) as lock:
            try:
                for left_over in entry.parent.glob(f"{prefix}*"):
                    shutil.rmtree(left_over)
                if not entry.exists():
                    with tempfile.TemporaryDirectory(prefix=prefix, dir=entry.parent) as workshop:
                        partial = Path(workshop) / entry.name
                        make(partial)
                        partial.rename(entry)
            finally:
                lock.unlink(missing_ok=True)
    return entry


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Be the only process of this user that builds: of two, one would remove what the other is standing on."""
    folder = directory()
    with ExitStack() as stack:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            busy = "another emu is building images, waiting"
            lock = stack.enter_context(locked(folder / ".build.lock", lambda: say(busy)))
        stack.callback(lock.unlink, missing_ok=True)
        yield


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn an OSError of writing below `place` into a HostError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(place) from None
        raise HostError(
            f"it cannot be written ({error.strerror or error})",
            where=str(error.filename or place),
            fix="choose a directory that you may write to (the cache: XDG_CACHE_HOME)",
        ) from None


def full(place: Path) -> HostError:
    """The error for a full disk."""
    return HostError("the disk is full", where=str(place), fix="free space, or set XDG_CACHE_HOME to a roomier place")
