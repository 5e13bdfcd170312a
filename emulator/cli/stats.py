"""`emu stats`: what nodes and links have used."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, POSITIONAL, either, pick


def stats(
    name: str | None = POSITIONAL,
    lab: str | None = LAB,
    watch: bool = typer.Option(False, "--watch", help="Go on, every --interval seconds, until Ctrl-C."),
    interval: float = typer.Option(1.0, "--interval", help="Real seconds over which rates are taken."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (one object a reading with --watch)."),
) -> None:
    """Show CPU, throttling and memory of each node, bytes and drops of each link."""
    import json
    import math

    from emulator.core.errors import UsageError
    from emulator.lab.readings import readings, view

    if not (math.isfinite(interval) and interval > 0):
        raise UsageError(f"an interval cannot be {interval:g}", where="--interval", fix="give seconds, like 1")
    found = pick(either(name, lab))
    if as_json:
        for reading in readings(found, interval, endless=watch):
            print(json.dumps(reading), flush=True)
        return
    from rich.live import Live

    from emulator.cli.console import console

    screen = console()
    if not watch:
        for reading in readings(found, interval, endless=False):
            screen.print(view(reading))
        return
    with Live(console=screen, auto_refresh=False) as live:
        for reading in readings(found, interval, endless=True):
            live.update(view(reading), refresh=True)
