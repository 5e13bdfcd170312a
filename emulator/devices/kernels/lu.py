"""A dense system of equations solved in double precision by numpy's own LAPACK: what a program without HPL gets.

It is not HPL's speed. numpy copies and transposes the matrix first, and n = 2048 (34 MB, what a board of 512 MB solves
in seconds) leaves panels, pivots and row swaps their share: about half of DGEMM's speed on the hosts tried, where HPL,
whose problem fills the memory, comes to within a few per cent of it. So LINPACK figures are compared with `dgemm`.
"""

from __future__ import annotations

import numpy as np

from emulator.devices.kernels.reading import Work

N = 2048


def lu(threads: int) -> Work:
    """One solution; operations are counted as HPL counts them (2/3 n^3 + 3/2 n^2). Threads: as `gemm.double`."""
    del threads
    rng = np.random.default_rng(0)
    a, b = rng.random((N, N)) - 0.5, rng.random(N)
    return Work(lambda: np.linalg.solve(a, b), 2 / 3 * N**3 + 3 / 2 * N**2, "FLOP", f"n={N}")
