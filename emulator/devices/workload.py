"""A training step as the operators it is made of: how much each computes and moves. Pure data, read from JSON.

The tables of the reference models (`reference()`) ship in `workloads/`; `operators` counts any other torch model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

DIRECTORY = Path(__file__).parent / "workloads"

#: `matrix`: a convolution or dense layer, which is a matrix product; `depthwise`: a convolution with one filter for
#: each channel; `pass`: all else (element-wise, normalisation, pooling, copies, the optimiser), which reads and writes
Kind = Literal["matrix", "depthwise", "pass"]
Phase = Literal["forward", "backward", "update"]


@dataclass(frozen=True)
class Operator:
    """Operators that are alike: sums over `launches` of them.

    `flops` counts a multiplication and an addition as two; `bytes` are the tensors read and written (fp32), each as
    often as it is gone through. A convolution may be done in other ways than directly, which cost memory: `unfolded`
    are the bytes of its input laid out as a matrix, each pixel as often as windows hold it (0 = it is one already);
    `tiles` those of everything transformed in tiles of 8 x 8 (Winograd, Fourier), whose products take `tile_flops`
    (0 = it cannot be).
    """

    kind: Kind
    phase: Phase
    flops: float
    bytes: float
    unfolded: float = 0.0
    tiles: float = 0.0
    tile_flops: float = 0.0
    launches: int = 1

    def plus(self, other: Operator) -> Operator:
        """Both together; they must be alike in kind and phase, and both have tiles or none."""
        mine, others = asdict(self), asdict(other)
        return Operator(**{key: mine[key] if isinstance(mine[key], str) else mine[key] + others[key] for key in mine})


@dataclass(frozen=True)
class Step:
    """One training step (forward, backward, update) of `model` on `batch` images of `image` x `image` pixels."""

    model: str
    batch: int
    image: int
    parameters: int
    operators: tuple[Operator, ...]

    def flops(self, kind: Kind) -> float:
        """Floating-point operations of one kind."""
        return sum(one.flops for one in self.operators if one.kind == kind)

    @property
    def launches(self) -> int:
        """How many operators the framework starts."""
        return sum(one.launches for one in self.operators)

    def to_json(self) -> str:
        """A text which `from_json` reads back to an equal Step; an operator a line."""
        head = {key: value for key, value in asdict(self).items() if key != "operators"}
        lines = ",\n".join(f"  {json.dumps(asdict(one))}" for one in self.operators)
        return f'{json.dumps(head)[:-1]}, "operators": [\n{lines}\n]}}\n'

    @staticmethod
    def from_json(text: str) -> Step:
        """Read a Step back; raises ValueError, KeyError or TypeError for another text."""
        return Step.from_dict(json.loads(text))

    @staticmethod
    def from_dict(raw: dict[str, Any]) -> Step:
        """Read back what `asdict` made."""
        return Step(**raw | {"operators": tuple(Operator(**one) for one in raw["operators"])})


@dataclass(frozen=True)
class Own:
    """An experiment's own step: what it is made of, the floating-point operations that the virtual clock charges for
    it, and CPU seconds on one core of this host (None = not measured: on the virtual clock none passes)."""

    step: Step
    charged: float
    seconds: float | None = None

    @staticmethod
    def from_dict(raw: dict[str, Any]) -> Own:
        """Read back what `asdict` made."""
        return Own(**raw | {"step": Step.from_dict(raw["step"])})


def merged(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Operators that are alike as one, in the order in which each kind first came."""
    found: dict[tuple[str, str, bool], Operator] = {}
    for one in operators:
        key = (one.kind, one.phase, one.tiles > 0)
        found[key] = found[key].plus(one) if key in found else one
    return tuple(found.values())


def references() -> list[str]:
    """The models whose tables ship, in order of the alphabet."""
    return sorted(path.stem for path in DIRECTORY.glob("*.json"))


@cache
def reference(model: str) -> Step:
    """The step of a reference model: batch 16, 224 x 224 pixels, 1000 classes, SGD, all weights; raises KeyError."""
    try:
        return Step.from_json((DIRECTORY / f"{model}.json").read_text())
    except FileNotFoundError:
        raise KeyError(model) from None
