"""What `run_experiment` returns: the summary's figures, typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class VariantResult:
    """Means over repeats. `state` is "ok", "diverged" (under 50 %) or "incomplete"; accuracies are 0 to 1.

    `payload_reduction` is against the baseline, per update; None for the baseline itself.
    """

    name: str
    state: str
    final_accuracy: float | None
    updates: float
    payload_bytes_to_server: float
    payload_bytes_per_update: float | None
    message_bytes_to_server: float
    message_bytes_per_update: float | None
    emulated_seconds: float
    learning_rate: float
    payload_reduction: float | None


@dataclass(frozen=True)
class ExperimentResult:
    """A finished run: its directory, each variant's figures, and the whole summary (the content of summary.json)."""

    directory: Path
    variants: Mapping[str, VariantResult]
    summary: Mapping[str, Any]

    @property
    def report(self) -> Path:
        """The page to look at."""
        return self.directory / "report.html"

    @property
    def marks(self) -> list[str]:
        """Reasons to doubt the run; empty if none was seen."""
        return list(self.summary["honesty"]["marks"])

    @property
    def degraded(self) -> list[str]:
        """Those of the marks that say that the host could not carry the run."""
        return list(self.summary["honesty"]["degraded"])

    @staticmethod
    def of(directory: Path, summary: Mapping[str, Any]) -> ExperimentResult:
        variants = {name: _variant(name, item) for name, item in summary["variants"].items()}
        return ExperimentResult(directory, variants, summary)


def _variant(name: str, item: Mapping[str, Any]) -> VariantResult:
    same = {key: item[key] for key in VariantResult.__dataclass_fields__ if key in item}
    versus = item["against_baseline"] or {}
    return VariantResult(name=name, payload_reduction=versus.get("payload_reduction_per_update"), **same)
