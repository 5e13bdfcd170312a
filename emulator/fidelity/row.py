"""One line of the fidelity report, and what the lines come to together."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: what a figure is to the emulation: an input of it, or one that it was never told
CALIBRATED, PREDICTED = "calibrated", "predicted"


@dataclass(frozen=True)
class Row:
    """One published figure against what a node gets. `reference` and `node` are in `unit`, emulated time.

    `model` is what the workload model says, for a training step. `node` None = not measured, `note` says why; else
    `note` says how it was measured.
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
        """As it stands in `--json`."""
        return asdict(self) | {"error": self.error}


def errors(rows: Iterable[Row]) -> dict[str, float | int | None]:
    """Median and worst size of the error over the predicted rows that were measured, and how many those are of how
    many; None where there is none."""
    predicted = [row for row in rows if row.role == PREDICTED]
    sizes = [abs(row.error) for row in predicted if row.error is not None]
    return {
        "median_error_predicted": statistics.median(sizes) if sizes else None,
        "worst_error_predicted": max(sizes, default=None),
        "predicted_measured": len(sizes),
        "predicted": len(predicted),
    }
