"""One core's single-precision matrix multiplication, measured; run as `python -m emulator.devices.sgemm`.

A program of its own, so that the caller never loads a BLAS nor starts its threads (a forked worker of a process
that ran two threads hangs). n = 512 keeps all three matrices (3 MiB) near the core's own caches, as the layers of
a small network do. The best of many short rounds is taken: other work on the host only ever slows a round.
"""

from __future__ import annotations

import json
import time

import numpy as np

N = 512
SECONDS = 1.0
ROUNDS = 400


def measure() -> float:
    """GFLOPS (2 n^3 operations a product) of the best round within about a second."""
    rng = np.random.default_rng(0)
    a = rng.random((N, N), dtype=np.float32)
    b = rng.random((N, N), dtype=np.float32)
    out = np.empty_like(a)
    np.matmul(a, b, out=out)
    best, begin = float("inf"), time.perf_counter()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        end = time.perf_counter()
        best = min(best, end - start)
        if end - begin > SECONDS:
            break
    return 2 * N**3 / best / 1e9


if __name__ == "__main__":
    print(json.dumps({"gflops": measure()}))  # noqa: T201
