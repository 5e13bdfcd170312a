"""`emu data`: the data sets that training reads."""

from __future__ import annotations

import json

import typer

from emulator.core.errors import EmuError

app = typer.Typer(help="Fetch and list data sets.", no_args_is_help=True)


@app.command("fetch")
def fetch(name: str = typer.Argument("mnist", help="A data set by name, or as path.py:Name.")) -> None:
    """Put a data set into the cache (EMU_DATA_DIR, else the user's), checked; quick if it is there."""
    from emulator.training import data

    data.fetch(name, say=lambda line: typer.echo(line, err=True))
    typer.echo(data.folder(name))


@app.command("list")
def show(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """What is known, and what of it lies in the cache."""
    from emulator.training import data

    rows: list[dict[str, object]] = []
    for name in data.known():
        row: dict[str, object] = {"name": name, "cached_bytes": None, "path": str(data.folder(name))}
        try:
            row["cached_bytes"] = data.cached(name)
            told = data.find(name).description
        except EmuError as error:
            row["error"] = told = str(error)
        rows.append(row)
        if not as_json:
            size = row["cached_bytes"]
            state = (
                "unreadable" if "error" in row else f"{size / 1e6:.1f} MB" if isinstance(size, int) else "not cached"
            )
            typer.echo(f"{name:<16} {state:>10}  {row['path']}  ({told})")
    if as_json:
        typer.echo(json.dumps(rows))
