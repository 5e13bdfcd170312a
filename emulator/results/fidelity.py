"""A fidelity report: its rows -> summary, table and page.

A row is one published figure: `reference` and `node` in `unit`, of emulated time; `error` is (node - reference) /
reference, None where the node was not measured. The errors that count are those of the predicted rows.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from emulator.results import numbers
from emulator.results.figures import Plot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from emulator.results.store import Run

KIND = "fidelity"
COLUMNS = ("device", "figure", "role", "published", "node", "error")
#: an input of the emulation, or a figure that it was never told
CALIBRATED, PREDICTED = "calibrated", "predicted"
ROWS = "rows.json"
#: the note of a row that was not asked for
LEFT_OUT = "left out by --quick"
#: how a unit is shown: divided by, name
_UNITS = {"FLOP/s": (1e9, "GFLOPS"), "B/s": (1e6, "MB/s"), "bit/s": (1e6, "Mbit/s")}


def is_one(value: Mapping[str, Any]) -> bool:
    """Whether an experiment or a summary is of this kind."""
    return value.get("kind") == KIND


def errors(rows: Iterable[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """Median and worst size of the error over the predicted rows that were measured, and how many those are of how
    many; None where there is none."""
    predicted = [row for row in rows if row["role"] == PREDICTED]
    sizes = [abs(row["error"]) for row in predicted if row["error"] is not None]
    return {
        "median_error_predicted": statistics.median(sizes) if sizes else None,
        "worst_error_predicted": max(sizes, default=None),
        "predicted_measured": len(sizes),
        "predicted": len(predicted),
    }


def rebuild(run: Run) -> dict[str, Any]:
    """Write summary.json and report.html from the rows, and return the summary; raises ResultError."""
    from emulator.results.report import page

    summary = summarise(run)
    run.write("summary.json", summary)
    text = page(
        "fidelity.html.j2",
        summary=summary,
        honesty=honesty_rows(summary),
        columns=(*COLUMNS, "how"),
        rows=[(*cells(row), row["note"]) for row in summary["rows"]],
        sources=sorted({row["source"] for row in summary["rows"]}),
        plots=[plot(summary)] if any(row["error"] is not None for row in summary["rows"]) else [],
    )
    run.write_text("report.html", text)
    return summary


def summarise(run: Run) -> dict[str, Any]:
    """The summary of a report, also of one cut short. Raises ResultError where its files cannot be read."""
    asked, facts, rows = run.read("experiment.json"), run.read("run.json"), run.read(ROWS)["rows"]
    found = errors(rows)
    return {
        "version": 1,
        "kind": KIND,
        "name": run.name,
        "run": run.id,
        "state": run.state(),
        "devices": asked["devices"],
        "quick": asked["quick"],
        "time_scale": asked["time_scale"],
        **found,
        "rows": rows,
        "variants": {},
        "findings": _findings(rows, found),
        "honesty": {
            **{key: facts.get(key) for key in ("engine", "runtime", "link_driver", "host", "started", "warnings")},
            "time_scale": asked["time_scale"],
            "seed": asked["seed"],
            "repeats": 1,
            "degraded": [],
            "marks": facts.get("marks", []),
        },
    }


def _findings(rows: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> list[str]:
    missing = [row["figure"] for row in rows if row["error"] is None and row["note"] != LEFT_OUT]
    outcome = result(found)
    said = [f"{outcome[0].upper()}{outcome[1:]}."]
    if missing:
        said.append(f"Not measured: {', '.join(missing)}; each row says why.")
    return said


def result(found: Mapping[str, Any]) -> str:
    """The outcome in a line."""
    median, worst = found["median_error_predicted"], found["worst_error_predicted"]
    sizes = "none measured" if median is None else f"median {median * 100:.1f} %, worst {worst * 100:.1f} %"
    measured = f"{found['predicted_measured']} of {found['predicted']} measured"
    return f"error over what is predicted: {sizes} ({measured})"


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row as the cells of the table, in the order of `COLUMNS`."""
    by, unit = _UNITS.get(row["unit"], (1.0, row["unit"]))
    return (
        row["device"],
        row["figure"],
        row["role"],
        f"{row['reference'] / by:.4g} {unit}",
        numbers.DASH if row["node"] is None else f"{row['node'] / by:.4g} {unit}",
        numbers.DASH if row["error"] is None else f"{row['error'] * 100:+.1f} %",
    )


def honesty_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """On what it was made, as label and text."""
    from emulator.results.report import host_line

    block = summary["honesty"]
    rows = [
        ("Engine", f"{block['engine']}; runtime {block['runtime']}; link driver {block['link_driver']}"),
        ("Time scale", f"{block['time_scale']:g} real seconds for one emulated second, where the row names no other"),
        ("Host", host_line(block["host"])),
        ("Method", "each figure in a node made for it, with the caps of any other; before each node that trains, the "
                   "host's own step is measured anew"),
    ]  # fmt: skip
    return rows + [("Note", note) for note in block["warnings"] or ()]


def plot(summary: Mapping[str, Any]) -> Plot:
    """The error of every row that was measured, inputs and predictions apart."""
    from emulator.results import style

    many = len(summary["devices"]) > 1
    rows = [row for row in summary["rows"] if row["error"] is not None]
    with style.settings():
        figure, (axes,) = style.panels(height=0.9 + 0.24 * len(rows))
        for number, role in enumerate((PREDICTED, CALIBRATED)):
            mine = [place for place, row in enumerate(rows) if row["role"] == role]
            axes.barh(
                mine, [rows[place]["error"] * 100 for place in mine], height=0.7,
                color=style.colour(number), hatch=style.hatch(number), edgecolor="white", label=role,
            )  # fmt: skip
        axes.set_yticks(
            range(len(rows)), [f"{row['device']} {row['figure']}" if many else row["figure"] for row in rows]
        )
        axes.invert_yaxis()
        axes.axvline(0, color=style.INK, linewidth=0.8)
        axes.set_xlabel("error of the node against the published figure, %")
        axes.legend(loc="best")
        return Plot(
            "Emulated against published",
            style.data_uri(figure),
            "Right of 0 the node's figure is the larger one: faster for a rate, slower for a training step's seconds.",
        )
