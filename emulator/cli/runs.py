"""`emu runs`: what was run, newest first."""

from __future__ import annotations

from pathlib import Path

import typer


def runs(
    out: Path = typer.Option(Path("runs"), "--out", help="Directory that the runs lie under."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """List the runs with their state and each variant's final accuracy."""
    from emulator.core.errors import ResultError
    from emulator.results.listing import listing

    if out.exists() and not out.is_dir():
        raise ResultError("this is not a directory", where=str(out), fix="give the one that the runs lie under")
    found = listing(out)
    if as_json:
        import json

        print(json.dumps(found, indent=1))
        return
    if not found:
        print(f"no runs in {out}/; make one with: emu experiment quick")
        return
    from emulator.cli.console import console
    from emulator.results.table import runs_table

    console().print(runs_table(found))
