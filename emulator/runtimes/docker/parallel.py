"""Several requests to an engine at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from emulator.core.children import reap_ended
from emulator.runtimes.docker.engine import PARALLEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do `work` for all, a few at once; the first error is raised when all have ended.

    Meanwhile the programs that this process started in nodes are reaped: a container ends only when all in it are.
    """
    with ThreadPoolExecutor(PARALLEL) as pool:
        futures = [pool.submit(work, item) for item in items]
        while wait(futures, timeout=0.02).not_done:
            reap_ended()
    return [future.result() for future in futures]
