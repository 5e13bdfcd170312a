"""`emu logs`: what a node's own command printed."""

from __future__ import annotations

import sys

import typer

from emulator.cli.labs import LAB, pick


def logs(
    node: str = typer.Argument(help="Node, e.g. worker-1."),
    lab: str | None = LAB,
    follow: bool = typer.Option(False, "--follow", "-f", help="Go on as more is printed, until Ctrl-C."),
) -> None:
    """Print the output of the `command:` that the topology gives a node."""
    from emulator.core.clock import RealClock
    from emulator.core.errors import LabError
    from emulator.runtimes.base import log_path

    target = pick(lab)
    plan = target.node(node).plan
    if not plan.command:
        raise LabError(f"{node} has no `command:` in its topology, so it has no log", fix="use `emu exec` to run one")
    path = log_path(target.id, node)
    clock = RealClock()
    while follow and not path.exists():
        clock.sleep(0.2)
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            data = file.read(65536)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            if not data:
                if not follow:
                    return
                clock.sleep(0.2)
