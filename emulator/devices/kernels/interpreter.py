"""A loop of plain Python: calls, dictionaries, attributes and whole numbers, as between a framework's operators."""

from __future__ import annotations

from emulator.devices.kernels.reading import Work

ITERATIONS = 20_000


class _Counter:
    def __init__(self) -> None:
        self.total = 0

    def add(self, value: int) -> None:
        self.total += value & 0xFF


def interpreter(threads: int) -> Work:
    """So many iterations; always one thread."""
    del threads
    return Work(_loop, ITERATIONS, "iteration", f"{ITERATIONS} iterations")


def _loop() -> int:
    counter, seen = _Counter(), {}
    for index in range(ITERATIONS):
        counter.add(index * 2654435761 >> 7)
        seen[index & 63] = index
    return counter.total + len(seen)
