"""`emu fidelity`: the published figures of a device against what its node gets here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.fidelity.row import Row


def fidelity(
    device: list[str] = typer.Option(["rpi-4"], "--device", help="A device; may be given several times."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    quick: bool = typer.Option(False, "--quick", help="Run one of the training steps only."),
    time_scale: float = typer.Option(0.2, "--time-scale", min=0.05, max=1.0, help="Real seconds of an emulated one."),
) -> None:
    """Run a device's benchmarks in a node, and say how far each is from the published figure."""
    from emulator.devices.profile import profile
    from emulator.devices.quiet import warnings
    from emulator.experiment.host import describe
    from emulator.experiment.signals import orderly
    from emulator.fidelity.measure import RUNTIME, in_node, rows
    from emulator.fidelity.row import errors

    devices = [profile(name) for name in dict.fromkeys(device)]

    def measure(name: str, basis: str, kernel: str) -> Any:
        return in_node(name, basis, kernel, time_scale)

    with orderly():
        found = [row for one in devices for row in rows(one, time_scale, quick, measure)]
    summary = errors(found)
    if as_json:
        import json

        honesty = {
            "host": describe(),
            "time_scale": time_scale,
            "quick": quick,
            "warnings": warnings(),
            "runtime": RUNTIME,
        }
        print(json.dumps({**summary, "rows": [row.to_json() for row in found], "honesty": honesty}, indent=1))
        return
    _show(found, summary, time_scale)


def _show(found: Sequence[Row], summary: Mapping[str, Any], time_scale: float) -> None:
    from rich.table import Table

    from emulator.cli.console import console

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("device", "figure", "role", "published", "node", "error", "unit", "note"):
        grid.add_column(title, justify="right" if title in ("published", "node", "error") else "left")
    for row in found:
        node = "-" if row.node is None else f"{row.node:.4g}"
        error = "-" if row.error is None else f"{row.error:+.1%}"
        grid.add_row(row.device, row.figure, row.role, f"{row.reference:.4g}", node, error, row.unit, row.note)
    console().print(grid)
    median, worst = summary["median_error_predicted"], summary["worst_error_predicted"]
    said = "none measured" if median is None else f"median {median:.1%}, worst {worst:.1%}"
    print(
        f"error over what is predicted: {said} "
        f"({summary['predicted_measured']} of {summary['predicted']} measured), time scale {time_scale:g}"
    )
