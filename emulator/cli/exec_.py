"""`emu exec`: run a program in a node."""

from __future__ import annotations

import signal
import sys

import typer

from emulator.cli.labs import LAB, pick
from emulator.core.errors import UsageError
from emulator.core.words import MORE_MEMORY, out_of_memory


def exec_(
    context: typer.Context,
    node: str = typer.Argument(
        metavar="NODE -- PROGRAM", help="Node, e.g. worker-1; after two dashes what to run in it."
    ),
    lab: str | None = LAB,
    workdir: str | None = typer.Option(None, "--workdir", "-w", help="Directory in the node to start in."),
    env: list[str] = typer.Option([], "--env", "-e", help="NAME=VALUE, more than once if needed."),
) -> None:
    """Run a program in a node: emu exec worker-1 -- hostname. Its exit status is emu's."""
    from emulator.runtimes.base import Command

    argv = context.args[1:] if context.args[:1] == ["--"] else context.args
    if not argv:
        raise UsageError("no program was given", fix="write it after two dashes: emu exec worker-1 -- hostname")
    if not argv[0]:
        raise UsageError("the program's name is empty", fix="write it after two dashes: emu exec worker-1 -- hostname")
    pairs = tuple(_pair(item) for item in env)
    command = Command(
        tuple(argv),
        env=pairs,
        cwd=workdir,
        stdin=0,
        stdout=1,
        stderr=2,
        tty=False,
    )
    target = pick(lab).node(node)
    before = target.usage().oom_kills
    status = run(target.start(command))
    if status == 128 + signal.SIGKILL and (kills := (usage := target.usage()).oom_kills - before) > 0:
        told = out_of_memory(node, kills, usage.memory_peak, target.plan.memory)
        print(f"emu: {told}; {MORE_MEMORY}", file=sys.stderr)
    sys.exit(status)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text!r} is not NAME=VALUE", where="--env", fix="write it like -e DEBUG=1")
    return name, value


def run(process: object) -> int:
    """Wait for a program, passing Ctrl-C and termination on to it; its exit status, 128 + n for a signal n."""
    from typing import cast

    from emulator.runtimes.base import Process

    program = cast(Process, process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda sent, _frame: program.send_signal(sent))
    status = program.wait()
    return status if status >= 0 else 128 - status
