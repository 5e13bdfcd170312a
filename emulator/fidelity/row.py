"""One line of the fidelity report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One published figure against what a node gets. `reference` and `node` are in `unit`, emulated time.

    `role` is one of `results.fidelity`'s. `model` is what the workload model says, for a training step. `node` None =
    not measured, `note` says why; else `note` says how it was measured.
    """

    device: str
    figure: str
    role: str
    unit: str
    reference: float
    source: str
    node: float | None
    note: str
    model: float | None = None

    @property
    def error(self) -> float | None:
        """(node - reference) / reference; None where the node was not measured."""
        return None if self.node is None else self.node / self.reference - 1

    def to_json(self) -> dict[str, Any]:
        """As it stands in the files and in `--json`."""
        return asdict(self) | {"error": self.error}
