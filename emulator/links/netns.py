"""Being in another network namespace for a moment: only the calling thread goes there, and it comes back."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.core.linux import CLONE_NEWNET, setns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Traveller:
    """Goes from namespace to namespace without coming home in between; `home` brings it back."""

    def __init__(self) -> None:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._at = ""

    def go(self, path: str) -> None:
        """Enter the namespace that `path` stands for; raises LinkError when it is gone."""
        if path == self._at:
            return
        try:
            there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                setns(there, CLONE_NEWNET)
            finally:
                os.close(there)
        except OSError as error:
            raise LinkError(
                f"the network namespace {path} cannot be entered ({error.strerror})",
                fix="take the lab down with `emu down` and start it again",
            ) from None
        self._at = path

    def home(self) -> None:
        """Back to where it was made; the traveller is used up."""
        setns(self._home, CLONE_NEWNET)
        os.close(self._home)


@contextmanager
def travelling() -> Iterator[Callable[[str], None]]:
    """Yields `go(path)`; afterwards the thread is in its own namespace again."""
    traveller = Traveller()
    try:
        yield traveller.go
    finally:
        traveller.home()


@contextmanager
def inside(path: str) -> Iterator[None]:
    """Be in one namespace."""
    with travelling() as go:
        go(path)
        yield
