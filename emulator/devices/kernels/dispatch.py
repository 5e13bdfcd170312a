"""What torch itself costs for each operator: single numbers multiplied, with gradients, so that nothing is computed."""

from __future__ import annotations

import torch

from emulator.devices.kernels.reading import Work

CHAIN = 500


def dispatch(threads: int) -> Work:
    """A chain of multiplications forward and its gradient backward: two operators a link. Always one thread."""
    del threads
    torch.set_num_threads(1)
    factor = torch.ones(1)
    start = torch.ones(1, requires_grad=True)

    def run() -> None:
        start.grad = None
        value = start
        for _ in range(CHAIN):
            value = value * factor
        torch.autograd.backward(value)

    return Work(run, 2 * CHAIN, "op", f"{CHAIN} multiplications of one number, forward and backward")
