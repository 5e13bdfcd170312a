"""STREAM's triad, a = b + s * c, over arrays that no cache holds (McCalpin, cs.virginia.edu/stream).

numpy has no fused form, so it goes over blocks that stay in a core's own cache between the two steps: what moves to
and from memory is STREAM's 24 bytes an element.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from emulator.devices.kernels.reading import Work

#: elements of each array: 32 MiB each, 4 times the largest cache of the devices that ship (STREAM's own rule)
N = 1 << 22
#: elements of a block: 128 KiB
BLOCK = 1 << 14


def triad(threads: int) -> Work:
    """One pass, its elements shared out among threads (numpy lets go of the interpreter's lock in each block)."""
    a, b, c = np.empty(N), np.full(N, 2.0), np.full(N, 1.0)

    def part(start: int, end: int) -> None:
        for at in range(start, end, BLOCK):
            to = min(at + BLOCK, end)
            np.multiply(c[at:to], 3.0, out=a[at:to])
            np.add(a[at:to], b[at:to], out=a[at:to])

    size = f"3 x {N * 8 >> 20} MiB"
    if threads == 1:
        return Work(lambda: part(0, N), 24 * N, "B", size)
    pool = ThreadPoolExecutor(threads)
    cuts = [N * index // threads for index in range(threads + 1)]
    return Work(lambda: list(pool.map(part, cuts[:-1], cuts[1:])), 24 * N, "B", size)
