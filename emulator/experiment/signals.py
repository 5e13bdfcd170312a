"""Ctrl-C, `kill` and a closed terminal end an experiment in the same orderly way; clean-up is not disturbed by them."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_POLITE = (signal.SIGTERM, signal.SIGHUP)


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def outcome(directory: Path) -> str:
    """What an interrupted run leaves, for `orderly`."""
    return f"what was recorded until then is in {directory}"


@contextmanager
def orderly(left: str = "") -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, unless the caller has handlers of its own or ignores them.

    `left` says what is left then of what was being made; `emu` prints it.
    """
    with _handling({number: _interrupt for number in _POLITE if signal.getsignal(number) == signal.SIG_DFL}):
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*filter(None, [left])) from None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and its like are ignored while something is removed: half a removal helps nobody."""
    with _handling(dict.fromkeys((signal.SIGINT, *_POLITE), signal.SIG_IGN)):
        yield


@contextmanager
def _handling(handlers: dict[signal.Signals, Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main one may set handlers
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
