"""`emu data`: the data sets that training reads."""

from __future__ import annotations

import json

import typer

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

    sizes = {name: data.cached(name) for name in data.known()}
    if as_json:
        typer.echo(
            json.dumps([{"name": name, "cached_bytes": sizes[name], "path": str(data.folder(name))} for name in sizes])
        )
        return
    for name, size in sizes.items():
        state = "not cached" if size is None else f"{size / 1e6:.1f} MB"
        typer.echo(f"{name:<16} {state:>10}  {data.folder(name)}  ({data.find(name).description})")
