"""Matrix multiplication, in double and in single precision: the most that a machine's arithmetic units do.

n = 768 is large enough that all of a BLAS's blocking is at work (within 3 % of n = 2048 on the hosts tried), and small
enough (14 MB in double) for a board of 512 MB and for a round of a fifth of a second there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.devices.kernels.reading import Work

N = 768


def double(threads: int) -> Work:
    """DGEMM; the number of threads is the BLAS's, told in the environment before numpy was imported."""
    del threads
    return _gemm(np.float64)


def single(threads: int) -> Work:
    """SGEMM, as `double`."""
    del threads
    return _gemm(np.float32)


def _gemm(precision: Any) -> Work:
    rng = np.random.default_rng(0)
    a, b = (rng.random((N, N)).astype(precision) for _ in "ab")
    out = np.empty_like(a)
    return Work(lambda: np.matmul(a, b, out=out), 2 * N**3, "FLOP", f"n={N}")
