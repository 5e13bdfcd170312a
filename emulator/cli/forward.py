"""`emu forward`: reach a node's port from this host."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, pick


def forward(
    target: str = typer.Argument(help="NODE:PORT, e.g. server:8080."),
    port: int = typer.Option(0, "--port", "-p", help="Port on this host's loopback (default: a free one)."),
    lab: str | None = LAB,
) -> None:
    """Listen on 127.0.0.1 and pass each connection on to a port of a node, until Ctrl-C."""
    from emulator.core.errors import UsageError
    from emulator.lab.forward import Forwarder

    node, _, number = target.rpartition(":")
    if not node or not number.isdigit() or not 0 < int(number) < 65536:
        raise UsageError(f"{target!r} is not NODE:PORT", fix="write it like server:8080")
    if not 0 <= port < 65536:
        raise UsageError(
            f"a port cannot be {port}", where="--port", fix="give 1 to 65535, or leave it out for a free one"
        )
    found = pick(lab)
    with Forwarder(found.node(node).plan, found.enter(node), int(number), port) as forwarder:
        print(f"127.0.0.1:{forwarder.port} -> {node}:{number} (Ctrl-C ends it)", flush=True)
        forwarder.serve()
