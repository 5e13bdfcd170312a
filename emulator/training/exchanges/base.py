"""What an exchange is: which part of a gradient a worker pushes, and how the server applies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.training.layout import Array


class StalePush(ValueError):
    """A push from an iteration that the server no longer remembers; the worker must pull afresh."""


@dataclass(frozen=True)
class Applied:
    """What the server did with a push: updates since its pull, and the mean of sigma where it is counted."""

    staleness: int
    sigma_mean: float | None = None


class Exchange(Protocol):
    """Made by `(layout, variant, seed, compressor)`; the same class on both sides, each using its half.

    `default_compressor` is used where the variant says "none". The flops are what the simulator charges, in
    SGEMM-equivalent operations for one push.
    """

    default_compressor: str
    select_flops: float
    apply_flops: float

    @property
    def iteration(self) -> int:
        """Server: updates applied so far."""
        ...

    def select(self, gradients: Sequence[Array]) -> tuple[Array, ...]:
        """Worker: the arrays to push for one gradient, given variable by variable."""
        ...

    def apply(self, parameters: Array, arrays: Sequence[Array], pulled: int) -> Applied:
        """Server: apply in place a push that was computed from iteration `pulled`.

        Raises MalformedPush or StalePush and then leaves the parameters and the iteration as they were.
        """
        ...

    def forget(self, oldest: int) -> None:
        """Server: no push from before iteration `oldest` is expected any more."""
        ...
