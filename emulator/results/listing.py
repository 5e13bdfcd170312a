"""The list of runs: what each was and how it ended, without reading any records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError
from emulator.results import store

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.results.store import Run


def listing(root: Path = store.ROOT) -> list[dict[str, Any]]:
    """One dictionary a run, newest first. A run that cannot be read has the state "unreadable"."""
    return [_entry(run) for run in store.runs(root)]


def _entry(run: Run) -> dict[str, Any]:
    entry = {"date": _date(run.id), "name": run.name, "id": run.id, "directory": str(run.directory)}
    try:
        state = run.state()
    except ResultError:
        return entry | {"state": "unreadable", "final_accuracy": {}, "marks": None}
    try:
        summary = run.read("summary.json")
    except ResultError:
        return entry | {"state": state, "final_accuracy": {}, "marks": None}
    accuracies = {name: item["final_accuracy"] for name, item in summary["variants"].items()}
    return entry | {"state": state, "final_accuracy": accuracies, "marks": summary["honesty"]["marks"]}


def _date(identity: str) -> str:
    """20250102-030405-7 -> 2025-01-02 03:04:05."""
    day, time, *_ = [*identity.split("-"), "", ""]
    if len(day) != 8 or len(time) != 6:
        return identity
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"
