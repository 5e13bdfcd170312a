"""What training costs on one core: selecting and encoding, decoding and applying, a CNN step against SGEMM."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from emulator.training import exchanges, models
from emulator.training.message import Message, decode, encode
from emulator.training.roles.worker import use_threads
from emulator.training.spec import Variant, Workload

REPEATS = 101


def median_ms(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median wall time of a call in milliseconds, after three calls that do not count."""
    times = []
    for _ in range(repeats + 3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[3:]) * 1e3


def bench_exchange(name: str) -> tuple[float, float]:
    """Milliseconds of (select + encode, decode + apply) for a push of the paper's CNN, ten updates old."""
    layout = models.build(Workload()).layout
    rng = np.random.default_rng(0)
    # Nine in ten entries are zero, as in a ReLU network's gradient: a selection may be slower on those.
    sets = [
        [(rng.standard_normal(s) * (rng.random(s) < 0.1)).astype(np.float32) for s in layout.shapes] for _ in range(4)
    ]
    worker, server = (exchanges.build(Variant(name, name), layout, 0) for _ in range(2))
    parameters, turn = np.zeros(layout.size, np.float32), iter(range(10**9))

    def send() -> list[bytes]:
        arrays = worker.select(sets[next(turn) % 4])
        return [bytes(frame) for frame in encode(Message("push", {"iteration": 0}, arrays))]

    pushes = [send() for _ in range(4)]

    def apply() -> None:
        pulled = max(0, server.iteration - 10)
        server.forget(pulled)
        server.apply(parameters, decode(pushes[next(turn) % 4]).arrays, pulled)

    return median_ms(send), median_ms(apply)


def bench_step(batch: int = 10) -> tuple[float, float]:
    """Milliseconds of a step, and the share of SGEMM's speed that it reaches (measured turn by turn)."""
    import torch

    cnn = models.build(Workload())
    use_threads(1)
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((batch, 28, 28)).astype(np.float32), rng.integers(0, 10, batch)
    parameters, square = cnn.initial(0), torch.randn(512, 512)
    steps = [(median_ms(lambda: cnn.gradients(parameters, images, labels), 9),
              median_ms(lambda: square @ square, 9)) for _ in range(9)]  # fmt: skip
    from emulator.training.models.mnist_cnn import MULTIPLY_ADDS

    shares = [6 * MULTIPLY_ADDS * batch / step / (2 * 512**3 / gemm) for step, gemm in steps]
    return statistics.median(step for step, _ in steps), statistics.median(shares)


def main() -> None:
    """Print the table."""
    print(f"training, one core, 421,642 parameters, c = 0.01, medians of {REPEATS}")
    print(f"{'exchange':<12}{'select + encode':>18}{'decode + apply':>18}")
    for name in exchanges.NAMES:
        select, apply = bench_exchange(name)
        print(f"{name:<12}{select:>15.2f} ms{apply:>15.2f} ms")
    step, share = bench_step()
    print(f"CNN step, batch 10: {step:.2f} ms, {share:.0%} of SGEMM's speed on one thread")


if __name__ == "__main__":
    main()
