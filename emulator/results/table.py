"""A summary, and a list of runs, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.results.numbers import COLUMNS, percent, row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

#: left out in the terminal, where room is short; the report has them
_WIDE_ONLY = ("bytes / update",)


def summary_table(summary: Mapping[str, Any]) -> RenderableType:
    """The results table with its findings, and on what they were made."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{summary['name']} ({summary['run']}, {summary['state']})", title_justify="left")
    shown = [number for number, column in enumerate(COLUMNS) if column not in _WIDE_ONLY]
    for number in shown:
        table.add_column(COLUMNS[number], justify="left" if number in (0, len(COLUMNS) - 1) else "right")
    for name, item in summary["variants"].items():
        cells = row(name, item)
        table.add_row(*(cells[number] for number in shown))
    lines = [*summary["findings"], made_on(summary), *(f"MARKED: {mark}" for mark in summary["honesty"]["marks"])]
    return Group(table, *(Text(line) for line in lines))


def made_on(summary: Mapping[str, Any]) -> str:
    """Engine, runtime, link driver, time scale and seed in one line: every number is shown with these."""
    honesty = summary["honesty"]
    return (
        f"engine {honesty['engine']}, runtime {honesty['runtime']}, links {honesty['link_driver']}, "
        f"time scale {honesty['time_scale']:g}, seed {honesty['seed']}, repeats {honesty['repeats']}"
    )


def runs_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """`emu runs`: one line a run, newest first."""
    from rich.table import Table

    table = Table("date", "name", "id", "state", "final accuracy", "marks")
    for item in items:
        accuracies = ", ".join(f"{name} {percent(share)}" for name, share in item["final_accuracy"].items())
        marks = "" if item["marks"] is None else str(len(item["marks"]))
        table.add_row(item["date"], item["name"], item["id"], item["state"], accuracies or "–", marks)
    return table
