"""`emu cp`: copy files between this host and a node."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, pick


def cp(
    source: str = typer.Argument(help="PATH here, or NODE:PATH."),
    target: str = typer.Argument(help="PATH here, or NODE:PATH."),
    lab: str | None = LAB,
) -> None:
    """Copy a file or a directory into or out of a node: emu cp model.bin worker-1:/tmp/"""
    from emulator.core.errors import UsageError
    from emulator.lab.copy import copy_in, copy_out

    (from_node, from_path), (to_node, to_path) = _split(source), _split(target)
    if (from_node is None) == (to_node is None):
        raise UsageError(
            "exactly one of the two paths must be in a node", fix="write it as NODE:PATH, e.g. worker-1:/tmp/x"
        )
    found = pick(lab)
    if to_node is not None:
        copy_in(found.node(to_node), from_path, to_path)
    elif from_node is not None:
        copy_out(found.node(from_node), from_path, to_path)


def _split(text: str) -> tuple[str | None, str]:
    node, colon, path = text.partition(":")
    return (node, path) if colon and "/" not in node else (None, text)
