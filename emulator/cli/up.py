"""`emu up`: make the cluster of a topology file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from emulator.cli.labs import ARCH, TIME_SCALE, path, scale

if TYPE_CHECKING:
    from emulator.core.plan import Plan
    from emulator.lab import Lab


def up(
    file: Path = typer.Argument(help="Topology file, e.g. topologies/wan-10.yaml.", readable=False, parser=path),
    name: str | None = typer.Option(None, "--name", "-n", help="Name of the lab (default: the topology's)."),
    time_scale: str | None = typer.Option(None, "--time-scale", metavar="NUMBER|auto", help=TIME_SCALE, parser=scale),
    seed: int | None = typer.Option(None, "--seed", help="Seed of the random streams."),
    arch: str | None = typer.Option(None, "--arch", help=ARCH),
    runtime: str | None = typer.Option(
        None, "--runtime", help="docker or embedded (default: docker where an engine has the images)."
    ),
    link_driver: str | None = typer.Option(
        None, "--link-driver", help="netem or relay (default: what this kernel can do)."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the resolved Plan and make nothing."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    wait: bool = typer.Option(True, help="Wait until every node answers a ping."),
) -> None:
    """Start the cluster of a topology file; it stays up until `emu down`."""
    start = time.monotonic()
    if dry_run:
        from emulator.links import driver
        from emulator.runtimes import known
        from emulator.topology import load_plan

        known(runtime or "embedded")
        driver(link_driver or "relay")

        _show(load_plan(file, name=name, time_scale=time_scale, seed=seed, arch=arch), as_json)
        return
    from emulator.core.errors import UsageError
    from emulator.core.words import counted
    from emulator.experiment.signals import orderly
    from emulator.lab import Lab

    if "fake" in (runtime, link_driver):
        raise UsageError(
            "the fake runtime lives inside one process and cannot stay up",
            fix="use it with `emu experiment --runtime fake`, or from Python with `Lab.from_file(..., runtime='fake')`",
        )
    lab = Lab.from_file(
        file, name=name, time_scale=time_scale, seed=seed, arch=arch, runtime=runtime, link_driver=link_driver
    )
    with orderly(f"nothing of lab {lab.name} is left"):
        lab.up(wait=wait)
    for note in (*lab.plan.notes, *_ended(lab)):
        print(f"note: {note}", file=sys.stderr)
    machines, took = len(lab.plan.machines), time.monotonic() - start
    if as_json:
        import json

        facts = {"lab": lab.name, "nodes": machines, "links": len(lab.plan.links), "seconds": round(took, 3)}
        print(
            json.dumps(
                facts | {"runtime": lab.runtime.name, "link_driver": lab.links.name, "time_scale": lab.plan.time_scale}
            )
        )
        return
    print(
        f"{lab.name} is up: {counted(machines, 'node')}, {counted(len(lab.plan.links), 'link')} in {took:.2f} s "
        f"(runtime {lab.runtime.name}, links by {lab.links.name}, time scale {lab.plan.time_scale:g})"
    )


def _ended(lab: Lab) -> list[str]:
    """What has become of the nodes whose programs have ended already, each in a sentence."""
    usage = lab.runtime.usage(lab.id, [node.name for node in lab.plan.machines if node.command or node.image])
    gone = [name for name, used in usage.items() if not used.running]
    if not gone:
        return []
    from emulator.lab.status import why

    return [f"{name}: {why(lab, name)}" for name in gone]


def _show(plan: Plan, as_json: bool) -> None:
    if as_json:
        print(plan.to_json())
        return
    from emulator.cli.console import console
    from emulator.topology.table import plan_table

    console().print(plan_table(plan))
