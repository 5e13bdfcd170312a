"""Figures as people read them, the same in the terminal and in the report. None is shown as a dash."""

from __future__ import annotations

from typing import Any

DASH = "–"


def percent(share: float | None, spread: float | None = None) -> str:
    """0.957 -> "95.7 %", with " ± 0.3" where repeats give a spread."""
    if share is None:
        return DASH
    return f"{share * 100:.1f}{'' if spread is None else f' ± {spread * 100:.1f}'} %"


def count(value: float | None, spread: float | None = None) -> str:
    """2450 -> "2,450"."""
    if value is None:
        return DASH
    return f"{value:,.0f}{'' if spread is None else f' ± {spread:,.0f}'}"


def size(value: float | None) -> str:
    """Bytes in decimal units: 33731 -> "33.7 kB"."""
    if value is None:
        return DASH
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}" if value < 999.5 * factor else f"{value / factor:,.0f} {unit}"
    return f"{value:.0f} B"


def times(factor: float | None) -> str:
    """A reduction: 50.004 -> "50.0×"."""
    return DASH if factor is None else f"{factor:.1f}×"


def seconds(value: float | None) -> str:
    """450.0 -> "450 s", 0.0312 -> "0.031 s"."""
    if value is None:
        return DASH
    return f"{value:,.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.3f} s"


def joules(value: float | None) -> str:
    """Energy: 12345.6 -> "12.3 kJ", 0.25 -> "0.25 J"; not known where a device's watts are not."""
    if value is None:
        return "not known"
    return f"{value / 1e3:,.1f} kJ" if value >= 1e3 else f"{value:.3g} J"


COLUMNS = (
    "variant", "learning rate", "final accuracy", "updates", "bytes to server", "bytes / update",
    "reduction / update", "reduction / accuracy", "reduction to equal accuracy", "staleness", "state",
)  # fmt: skip


def row(name: str, item: dict[str, Any]) -> tuple[str, ...]:
    """A variant of a summary as the cells of the results table, in the order of `COLUMNS`."""
    spread, versus = item["spread"], item["against_baseline"] or {}
    return (
        name,
        f"{item['learning_rate']:g}",
        percent(item["final_accuracy"], spread["final_accuracy"]),
        count(item["updates"], spread["updates"]),
        size(item["payload_bytes_to_server"]),
        size(item["payload_bytes_per_update"]),
        times(versus.get("payload_reduction_per_update")),
        times(versus.get("payload_reduction_per_accuracy")),
        times(versus.get("payload_reduction_to_common_accuracy")),
        DASH if item["staleness_mean"] is None else f"{item['staleness_mean']:.1f}",
        item["state"],
    )
