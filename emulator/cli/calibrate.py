"""`emu calibrate`: what this host's cores do, measured once and kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from emulator.devices.delivery import Curve
    from emulator.devices.speed import Speed


def calibrate(
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    anew: bool = typer.Option(False, "--anew", help="Measure all of it again."),
    force: bool = typer.Option(False, "--force", help="Measure again, also on a busy host; the figures are marked."),
) -> None:
    """Measure this host (about a minute, once), or show what was measured. It has to be quiet."""
    from emulator.devices import calibration
    from emulator.devices.host import cores_here, cpu_model
    from emulator.devices.quiet import warnings

    speeds = calibration.whole(force=force, anew=anew or force)
    curves = _delivery(anew or force)
    said = warnings()
    if as_json:
        import json
        from dataclasses import asdict

        facts = {"cpu": cpu_model(), "cores": cores_here(), "key": calibration.key(), "warnings": said}
        kernels = {name: asdict(speed) for name, speed in speeds.items()}
        delivered = {"delivery": {kind: [list(point) for point in one.points] for kind, one in curves.items()}}
        print(json.dumps(facts | delivered | {"kernels": kernels, "file": str(calibration.cache_file())}, indent=1))
        return
    from emulator.cli.console import console

    console().print(_view(calibration.key(), cores_here(), speeds))
    for kind, curve in curves.items():
        parts = ", ".join(f"{worth:.3f} at {share:g}" for share, worth in curve.points)
        print(f"a CPU second under a cap is worth, for {_WORK[kind]}: {parts} of a core")
    for text in calibration.doubts():
        print(f"warning: {text}", file=sys.stderr)
    for text in said:
        print(f"warning: this host's speed may change: {text}", file=sys.stderr)


#: how a kind of work is shown
_WORK = {"matrix": "matrix products", "training": "training steps"}


def _delivery(anew: bool) -> Mapping[str, Curve]:
    """What capped time is worth, measured where it is not known yet; empty where no cap can be set."""
    from emulator.devices import delivery
    from emulator.runtimes.embedded import EmbeddedRuntime

    known = {kind: delivery.known(kind) for kind in delivery.KINDS if delivery.known(kind).points}
    if EmbeddedRuntime().probe() or (len(known) == len(delivery.KINDS) and not anew):
        return known
    from emulator.runtimes.delivery import measure

    return measure()


#: how a unit is shown: divided by, name
_UNITS = {
    "FLOP/s": (1e9, "GFLOPS"),
    "B/s": (1e9, "GB/s"),
    "op/s": (1e3, "thousand operators/s"),
    "iteration/s": (1e6, "million iterations/s"),
}


def _view(key: str, cores: int, speeds: Mapping[str, Speed]) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from emulator.core.clock import date

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("kernel", "one core", "one, all busy", f"all {cores}", "unit", "spread", "measured"):
        grid.add_column(title, justify="left" if title in ("kernel", "unit", "measured") else "right", no_wrap=True)
    for name, speed in speeds.items():
        factor, unit = _UNITS.get(speed.unit, (1.0, speed.unit))
        grid.add_row(
            name,
            *(f"{rate / factor:.3g}" for rate in (speed.one, speed.loaded, speed.all)),
            unit,
            f"{speed.spread:.1%}",
            date(speed.when) + (" (busy)" if speed.busy else ""),
        )
    return Group(Text(key), grid)
