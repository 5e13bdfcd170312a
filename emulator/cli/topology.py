"""`emu topology show FILE`: what a topology file describes, as a tree or a drawing."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from emulator.cli.labs import TIME_SCALE, path, scale

app = typer.Typer(help="Look at topology files.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at topology files."""


@app.command("show")
def show(
    file: Path = typer.Argument(..., help="Topology file.", readable=False, parser=path),
    plot: Path | None = typer.Option(None, "--plot", help="Draw the graph into this file (.png, .svg, .pdf) instead."),
    time_scale: str | None = typer.Option(None, "--time-scale", metavar="NUMBER|auto", help=TIME_SCALE, parser=scale),
    as_json: bool = typer.Option(False, "--json", help="Print the resolved Plan as JSON."),
) -> None:
    """Show a topology as a tree, or draw it with rates and delays on the links."""
    from emulator.devices.host import calibration
    from emulator.topology import load_plan

    plan = load_plan(file, time_scale=time_scale, host=calibration())
    if as_json:
        print(plan.to_json())
        return
    if plot is not None:
        from emulator.topology.draw import draw

        draw(plan, plot)
        print(plot)
        print(f"drawn: {plan.name}", file=sys.stderr)
        return
    from emulator.cli.console import console
    from emulator.topology.tree import plan_tree

    console().print(plan_tree(plan))
