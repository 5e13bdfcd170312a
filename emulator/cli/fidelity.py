"""`emu fidelity`: the published figures of a device against what its node gets here."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def fidelity(
    device: list[str] = typer.Option(["rpi-4"], "--device", help="A device; may be given several times."),
    quick: bool = typer.Option(False, "--quick", help="HPL, STREAM's triad and one training step only."),
    time_scale: float = typer.Option(0.4, "--time-scale", min=0.05, max=10.0, help="Real seconds of an emulated one."),
    out: Path = typer.Option(Path("runs"), "--out", help="Directory that the report goes under."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON instead of a table."),
) -> None:
    """Run a device's benchmarks in nodes, and say how far each is from the published figure."""
    from emulator.fidelity.run import run

    found = run(device, quick=quick, time_scale=time_scale, out=out, say=_say)
    summary = found.read("summary.json")
    if as_json:
        import json

        print(json.dumps(summary, indent=1))
    else:
        from emulator.cli.console import console
        from emulator.results.table import summary_table

        console().print(summary_table(summary))
    print(f"report: {found.directory / 'report.html'}", file=sys.stderr)


def _say(text: str) -> None:
    print(f"emu: {text}", file=sys.stderr)
