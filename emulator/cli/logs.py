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
    """Print the output of the `command:` that the topology gives a node (of its image's program, with containers)."""
    from emulator.core.errors import LabError
    from emulator.core.words import MORE_MEMORY, out_of_memory

    target = pick(lab)
    plan = target.node(node).plan
    if not plan.command and target.runtime.name != "docker":
        raise LabError(f"{node} has no `command:` in its topology, so it has no log", fix="use `emu exec` to run one")
    for piece in target.runtime.log(target.id, node, follow):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    usage = target.node(node).usage()
    if usage.oom_kills:
        told = out_of_memory(node, usage.oom_kills, usage.memory_peak, plan.memory)
        print(f"emu: {told}; {MORE_MEMORY}", file=sys.stderr)
