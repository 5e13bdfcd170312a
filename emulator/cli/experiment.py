"""`emu experiment`: train every variant of an experiment under the same emulated budget, and report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from emulator.cli.labs import ARCH, TIME_SCALE, scale

if TYPE_CHECKING:
    from emulator.experiment import ExperimentResult


def experiment(
    name: str = typer.Argument(None, metavar="NAME|FILE", help="Name (see --list) or file of an experiment."),
    listed: bool = typer.Option(False, "--list", help="List the experiments that are known by name."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="e.g. variants.adacomp.c=0.005"),
    repeats: int = typer.Option(None, "--repeats", help="How often to run each variant; repeat n uses seed + n."),
    seed: int = typer.Option(None, "--seed", help="Seed of the first repeat."),
    time_scale: str = typer.Option(None, "--time-scale", metavar="NUMBER|auto", help=TIME_SCALE, parser=scale),
    arch: str = typer.Option(None, "--arch", help=ARCH),
    runtime: str = typer.Option(
        None, "--runtime", help="docker, embedded, or fake (virtual clock; default without root)."
    ),
    link_driver: str = typer.Option(None, "--link-driver", help="netem or relay (default: what this kernel can do)."),
    out: Path = typer.Option(Path("runs"), "--out", help="Directory to put the run under."),
    force: bool = typer.Option(False, "--force", help="Run although the host is expected to be too small."),
    strict: bool = typer.Option(False, "--strict", help="Stop as soon as the host does not keep up."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Run an experiment and write its records, summary and report under runs/."""
    from emulator.core.errors import UsageError

    if listed:
        _list(as_json)
        return
    if name is None:
        raise UsageError("no experiment is named", fix="name one of `emu experiment --list`, or a file")
    from emulator.experiment import Options, run_experiment
    from emulator.experiment.progress import watching
    from emulator.experiment.read import parse_setting

    overrides = dict(parse_setting(text) for text in settings)
    options = Options(overrides, repeats, seed, time_scale, runtime, link_driver, out, force, arch, strict)
    with watching() as watcher:
        result = run_experiment(name, options, watcher)
    _show(result, as_json)
    _own_up(result)


def _list(as_json: bool) -> None:
    import json

    from emulator.experiment.find import described

    found = described()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    for item in found:
        print(f"{item['name']:<20} {item['description']}")


def _show(result: ExperimentResult, as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps(result.summary, indent=1))
    else:
        from emulator.cli.console import console
        from emulator.results.table import summary_table

        console().print(summary_table(result.summary))
    print(f"report: {result.report}", file=sys.stderr)


def _own_up(result: ExperimentResult) -> None:
    """A run that the host could not carry is told by the exit code as well, after its whole report."""
    from emulator.core.errors import DegradedError
    from emulator.core.words import counted

    if result.degraded:
        raise DegradedError(
            f"degraded, the host could not carry it as planned ({counted(len(result.degraded), 'mark')})",
            where=f"{result.directory.parent.name}/{result.directory.name}",
            fix="read its marks, mend what they name, and run it again",
        )
