"""Which packets are lost, as gaps: how many pass before the next one that does not.

Gaps cost a random number each instead of one a packet, and tell at once how much of a super-packet passes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.loss import LossModel
    from emulator.links.model import Uniform

#: more packets than any line carries
NEVER = 1 << 62


class Losses(Protocol):
    """A source of gaps."""

    def gap(self) -> int:
        """How many packets pass before the next is lost."""
        ...


def losses(share: float, model: LossModel | None, rng: Uniform) -> Losses | None:
    """The losses of a direction, by the model or else independent with probability `share`; None where there are none.

    All packets are lost at a share of 1.
    """
    if model is not None and share < 1:
        return (GilbertElliott if model.kind == "gilbert-elliott" else FourState)(model.parameters, rng)
    return Independent(share, rng) if share else None


def geometric(share: float, rng: Uniform) -> int:
    """How many trials fail before one succeeds, each with probability `share`."""
    if share >= 1:
        return 0
    if share <= 0:
        return NEVER
    return min(NEVER, int(math.log(1.0 - rng.random()) / math.log1p(-share)))


class Independent:
    """Each packet is lost with the same probability."""

    def __init__(self, share: float, rng: Uniform) -> None:
        self._share, self._rng = share, rng

    def gap(self) -> int:
        return geometric(self._share, self._rng)


class GilbertElliott:
    """`LossModel` of that kind. Packets between one event (a loss, or a change of state) and the next are skipped."""

    def __init__(self, parameters: Sequence[float], rng: Uniform) -> None:
        p, r, in_bad, in_good = parameters
        self._rng = rng
        self._bad = False
        self._leave, self._lose = (p, r), (in_good, in_bad)

    def gap(self) -> int:
        passed = 0
        while passed < NEVER:
            leave, lose = self._leave[self._bad], self._lose[self._bad]
            event = leave + lose - leave * lose
            passed += geometric(event, self._rng)
            if passed >= NEVER:
                break
            # One of the two happens to this packet, or both; the state that it found decides whether it is lost.
            lost = self._rng.random() * event < lose
            if not lost or self._rng.random() < leave:
                self._bad = not self._bad
            if lost:
                return passed
            passed += 1
        return NEVER


class FourState:
    """`LossModel` of that kind: each packet takes the chain a step, and is lost where that leads to state 3 or 4."""

    def __init__(self, parameters: Sequence[float], rng: Uniform) -> None:
        self._p13, self._p31, self._p32, self._p23, self._p14 = parameters
        self._rng = rng
        self._state = 1

    def gap(self) -> int:
        passed = 0
        while passed < NEVER:
            if self._state == 3:
                step = self._rng.random()
                if step >= self._p31 + self._p32:
                    return passed
                self._state = 2 if step < self._p32 else 1
                passed += 1
            elif self._state == 4:
                self._state = 1
                passed += 1
            else:
                leave = self._p23 if self._state == 2 else self._p13 + self._p14
                passed += geometric(leave, self._rng)
                if passed >= NEVER:
                    break
                lone = self._state == 1 and self._rng.random() * leave < self._p14
                self._state = 4 if lone else 3
                return passed
        return NEVER
