"""STREAM's four loops over arrays that no cache holds (McCalpin, cs.virginia.edu/stream), and the C library's memcpy.

numpy has no fused form of scale and add, so the triad goes over blocks that stay in a core's own cache between its two
steps. What is counted is what moves to and from memory: STREAM's 16 bytes an element for copy and scale, 24 for add and
triad; of memcpy, as tinymembench does, each byte that is copied once.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from emulator.devices.kernels.reading import Work

if TYPE_CHECKING:
    from collections.abc import Callable

#: elements of each array: 32 MiB each, 4 times the largest cache of the devices that ship (STREAM's own rule)
N = 1 << 22
#: elements of a block: 128 KiB
BLOCK = 1 << 14


def copy(threads: int) -> Work:
    """c = a."""
    a, c = np.full(N, 1.0), np.empty(N)
    return _shared(threads, lambda at, to: np.copyto(c[at:to], a[at:to]), 16, 2)


def scale(threads: int) -> Work:
    """b = s * c."""
    b, c = np.empty(N), np.full(N, 1.0)
    return _shared(threads, lambda at, to: np.multiply(c[at:to], 3.0, out=b[at:to]), 16, 2)


def add(threads: int) -> Work:
    """c = a + b."""
    a, b, c = np.full(N, 1.0), np.full(N, 2.0), np.empty(N)
    return _shared(threads, lambda at, to: np.add(a[at:to], b[at:to], out=c[at:to]), 24, 3)


def triad(threads: int) -> Work:
    """a = b + s * c."""
    a, b, c = np.empty(N), np.full(N, 2.0), np.full(N, 1.0)

    def block(at: int, to: int) -> None:
        np.multiply(c[at:to], 3.0, out=a[at:to])
        np.add(a[at:to], b[at:to], out=a[at:to])

    return _shared(threads, block, 24, 3)


def memcpy(threads: int) -> Work:
    """The C library's memcpy of one array into another, on one thread whatever it is given."""
    del threads
    a, b = np.full(N, 1.0), np.empty(N)
    source, target = ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(b.ctypes.data)
    return Work(lambda: ctypes.memmove(target, source, a.nbytes), a.nbytes, "B", f"{a.nbytes >> 20} MiB")


def _shared(threads: int, block: Callable[[int, int], object], each: int, arrays: int) -> Work:
    """One pass of `block`, the elements shared out among threads (numpy lets go of the interpreter's lock in each)."""

    def part(start: int, end: int) -> None:
        for at in range(start, end, BLOCK):
            block(at, min(at + BLOCK, end))

    size = f"{arrays} x {N * 8 >> 20} MiB"
    if threads == 1:
        return Work(lambda: part(0, N), each * N, "B", size)
    pool = ThreadPoolExecutor(threads)
    cuts = [N * index // threads for index in range(threads + 1)]
    return Work(lambda: list(pool.map(part, cuts[:-1], cuts[1:])), each * N, "B", size)
