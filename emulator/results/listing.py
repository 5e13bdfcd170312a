"""The list of runs: what each was and how it ended, without reading any records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError
from emulator.results import fidelity, linpack, store

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.results.store import Run


def listing(root: Path = store.ROOT) -> list[dict[str, Any]]:
    """One dictionary a run, newest first. A run that cannot be read has the state "unreadable"."""
    return [_entry(run) for run in store.runs(root)]


def _entry(run: Run) -> dict[str, Any]:
    entry = {"date": _date(run.id), "name": run.name, "id": run.id, "directory": str(run.directory)}
    try:
        return entry | {"state": run.state()} | _outcome(run)
    except ResultError:
        return entry | {"state": "unreadable", "final_accuracy": {}, "marks": None, "degraded": False}


def _outcome(run: Run) -> dict[str, Any]:
    """What the summary says, if there is one yet; raises ResultError for a damaged one."""
    path = run.directory / "summary.json"
    if not path.exists():
        return {"final_accuracy": {}, "marks": None, "degraded": False}
    summary = run.read(path.name)
    variants, told = summary.get("variants"), summary.get("honesty")
    honesty: dict[str, Any] = told if isinstance(told, dict) else {}
    marks = honesty.get("marks")
    if not isinstance(variants, dict) or not isinstance(marks, list) or not all(map(_told, variants.values())):
        raise ResultError("this is not a summary", where=str(path), fix="make it anew with `emu report`")
    accuracies = {name: item["final_accuracy"] for name, item in variants.items()}
    outcome = {"final_accuracy": accuracies, "marks": marks, "degraded": bool(honesty.get("degraded"))}
    for kind in (linpack, fidelity):
        if kind.is_one(summary):
            outcome["result"] = kind.result(summary)
    return outcome


def _told(variant: Any) -> bool:
    """Whether a variant tells its final accuracy; None = it was cut short before any evaluation."""
    return isinstance(variant, dict) and isinstance(variant.get("final_accuracy", ""), (int, float, type(None)))


def _date(identity: str) -> str:
    """20250102-030405-7 -> 2025-01-02 03:04:05."""
    day, time, *_ = [*identity.split("-"), "", ""]
    if len(day) != 8 or len(time) != 6:
        return identity
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"
