"""`emu shell`: a shell in a node."""

from __future__ import annotations

import sys

import typer

from emulator.cli.exec_ import run
from emulator.cli.labs import LAB, pick

#: bash where the node has it; an image may have /bin/sh alone
_BEST = '[ -x /bin/bash ] && exec /bin/bash "$@"; exec /bin/sh "$@"'


def shell(node: str = typer.Argument(help="Node, e.g. worker-1."), lab: str | None = LAB) -> None:
    """Open a shell in a node."""
    from emulator.runtimes.base import Command

    tty = sys.stdin.isatty()
    argv = ("/bin/sh", "-c", _BEST, "sh", *(("-i",) if tty else ()))
    sys.exit(run(pick(lab).node(node).start(Command(argv, stdin=0, stdout=1, stderr=2, tty=tty))))
