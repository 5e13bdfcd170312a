"""Copy files into and out of a node, as tar streams between this host and the node's own `tar`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from emulator.core.errors import UsageError
from emulator.runtimes.base import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.lab.node import LabNode


def copy_in(node: LabNode, source: str, target: str) -> None:
    """Copy `source` of this host to `target` in the node (into it where it is a directory). Raises UsageError."""
    path = Path(source)
    if not path.exists():
        raise UsageError(f"{source!r} does not exist on this host", fix="check the path")
    directory, name = _destination(node, target, path.name)
    # The node's tar would take the file away and make a directory in its place.
    there = str(Path(directory, name))
    if path.is_dir() and node.run(["sh", "-c", '[ -e "$1" ] && [ ! -d "$1" ]', "sh", there]).returncode == 0:
        raise UsageError(
            f"{source!r} is a directory, and {there!r} is a file on {node.name}", fix="give a directory as the target"
        )

    def feed(stream: BinaryIO) -> None:
        with tarfile.open(fileobj=stream, mode="w|") as archive:
            archive.add(path, arcname=name, filter=_anonymous)

    _tar(node, ("tar", "-x", "-C", directory, "-f", "-"), feed)


def copy_out(node: LabNode, source: str, target: str) -> None:
    """Copy `source` of the node to `target` on this host (into it where it is a directory). Raises UsageError."""
    inner = Path(source)
    if node.run(["test", "-e", source]).returncode:
        raise UsageError(f"{source!r} does not exist on {node.name}", fix="check the path in the node")
    outer = Path(target)
    destination = outer / inner.name if outer.is_dir() else outer
    if not destination.parent.is_dir():
        raise UsageError(f"{str(destination.parent)!r} is not a directory on this host", fix="make it first")
    if destination.exists() and not destination.is_dir() and node.run(["test", "-d", source]).returncode == 0:
        raise UsageError(
            f"{source!r} is a directory on {node.name}, and {str(destination)!r} is a file here",
            fix="give a directory as the target",
        )
    chunks = _tar(node, ("tar", "-c", "-C", str(inner.parent), "-f", "-", inner.name), lambda _stream: None)
    try:
        _unpack(chunks, destination)
    except (OSError, tarfile.TarError) as error:  # below the top too, a directory may meet a file, or a device come out
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"copying to {str(destination)!r} failed: {reason}", fix="check what is there, and the space here"
        ) from None


def _unpack(chunks: bytes, destination: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(chunks)) as archive:
        for member in archive.getmembers():
            # The top entry takes the name that the user asked for.
            member.name = str(Path(destination.name, *Path(member.name).parts[1:]))
            archive.extract(member, destination.parent, filter="data")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _destination(node: LabNode, target: str, name: str) -> tuple[str, str]:
    """The directory in the node to unpack in, and the name to give there."""
    if target.endswith("/") or node.run(["test", "-d", target]).returncode == 0:
        directory, chosen = target, name
    else:
        directory, chosen = str(Path(target).parent), Path(target).name
    if node.run(["test", "-d", directory]).returncode:
        raise UsageError(f"{directory!r} is not a directory on {node.name}", fix="make it first with `emu exec`")
    return directory, chosen


def _tar(node: LabNode, argv: tuple[str, ...], feed: Callable[[BinaryIO], None]) -> bytes:
    status, out, err = node.stream(Command(argv), feed)
    if status:
        last = (err.decode(errors="replace").strip() or "no reason").splitlines()[-1]
        raise UsageError(f"copying on {node.name} failed: {last}", fix="check the paths and the space in the node")
    return out
