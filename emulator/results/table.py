"""A summary, and a list of runs, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.results import energy, fidelity, linpack
from emulator.results.numbers import COLUMNS, percent, row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

#: of the report's columns, those that fit 80 characters, with the titles that they have here
_TITLES = {
    "variant": "variant",
    "final accuracy": "final\naccuracy",
    "updates": "\nupdates",
    "bytes to server": "bytes to\nserver",
    "reduction / update": "reduction\n/ update",
    "reduction / accuracy": "reduction\n/ accuracy",
    "state": "\nstate",
}
#: all of a linpack's columns
_LINPACK_TITLES = dict(
    zip(
        linpack.COLUMNS,
        (
            "\nnodes",
            "\ngrid",
            "\nGFLOPS",
            "\nreference",
            "\nerror",
            "\nspeed-up",
            "of the\nreference",
            "emulated\ntime",
            "\nstate",
        ),
        strict=True,
    )
)


def summary_table(summary: Mapping[str, Any]) -> RenderableType:
    """The results table with its findings, and on what they were made; of any kind of experiment."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, title in _titles(summary).items():
        left = column in ("variant", "state", "device", "figure", "role")
        table.add_column(title, justify="left" if left else "right", no_wrap=True, overflow="fold", vertical="bottom")
    for line in _rows(summary):
        table.add_row(*line)
    degraded = ", degraded" if summary["honesty"]["degraded"] else ""
    head = f"{summary['name']}, run {summary['run']} ({summary['state']}{degraded})"
    spent = energy.line(summary.get("variants", {}))
    lines = [
        *summary["findings"],
        *([spent] if spent else []),
        made_on(summary),
        *(f"MARKED: {mark}" for mark in summary["honesty"]["marks"]),
    ]
    return Group(Text(head, style="bold"), table, *(Text(line) for line in lines))


def _titles(summary: Mapping[str, Any]) -> dict[str, str]:
    if fidelity.is_one(summary):
        return {column: column for column in fidelity.COLUMNS}
    return _LINPACK_TITLES if linpack.is_one(summary) else _TITLES


def _rows(summary: Mapping[str, Any]) -> list[list[str]]:
    if fidelity.is_one(summary):
        return [list(fidelity.cells(row)) for row in summary["rows"]]
    if linpack.is_one(summary):
        return [list(linpack.row(case)) for case in summary["cases"]]
    shown = [dict(zip(COLUMNS, row(name, item), strict=True)) for name, item in summary["variants"].items()]
    return [[cells[column] for column in _TITLES] for cells in shown]


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

    table = Table(box=None, pad_edge=False, header_style="bold")
    # Where the terminal is narrow, a date breaks between day and time only, and a run's name anywhere.
    for title, width in (("date", 10), ("run", 12), ("state", None), ("result", 8), ("marks", None)):
        table.add_column(title, min_width=width, no_wrap=width is None, overflow="fold")
    for item in items:
        accuracies = ", ".join(f"{name} {percent(share)}" for name, share in item["final_accuracy"].items())
        told = item.get("result") or accuracies or "–"
        marks = (
            "" if item["marks"] is None else str(len(item["marks"])) + (", degraded" if item.get("degraded") else "")
        )
        run = f"{item['name']}/{item['id']}"
        table.add_row(item["date"], run, item["state"], told, marks)
    return table
