"""`emu report`: summary and report of a run, made again from its records."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def report(
    run: str = typer.Argument("latest", help="`latest`, a directory, NAME (its latest), NAME/ID or ID."),
    out: Path = typer.Option(Path("runs"), "--out", help="Directory that the runs lie under."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Print a run's table and write its summary.json and report.html anew, also for a run that was cut short."""
    from emulator.core.errors import ResultError
    from emulator.results import store
    from emulator.results.report import rebuild

    try:
        found = store.find(run, out)
    except ResultError:
        # A path was meant, so what lies under --out is no answer.
        if "/" in run and Path(run).is_dir():
            fix = "name a run that `emu runs` lists, or a run's own directory"
            raise ResultError("this directory holds no run (no run.json)", where=run, fix=fix) from None
        raise
    summary = rebuild(found)
    if as_json:
        import json

        print(json.dumps(summary, indent=1))
    else:
        from emulator.cli.console import console
        from emulator.results.table import summary_table

        console().print(summary_table(summary))
    print(f"report: {found.directory / 'report.html'}", file=sys.stderr)
