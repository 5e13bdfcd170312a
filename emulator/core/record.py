"""A record: one thing that happened, one JSON line. The frozen format behind every table and plot.

Line = {"v": 1, "t": emulated seconds since the run's start, "node": who, "kind": what, ...fields}.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = 1
RESERVED = ("v", "t", "node", "kind")

#: seconds; no time is this large (nor is NaN smaller)
_FOREVER = 1e15


def encode(t: float, node: str, kind: str, fields: dict[str, Any]) -> str:
    """One line without its newline; raises ValueError for a field whose name is reserved."""
    taken = [name for name in RESERVED if name in fields]
    if taken:
        raise ValueError(f"field name {taken[0]!r} is reserved in a record")
    head = {"v": VERSION, "t": round(t, 6), "node": node, "kind": kind}
    return json.dumps(head | fields, separators=(",", ":"), allow_nan=False)


class RecordWriter:
    """Appends records to an open file descriptor, one `write` a line, so that writers never interleave."""

    def __init__(self, fd: int, node: str) -> None:
        self._fd = fd
        self._node = node

    def __call__(self, t: float, kind: str, fields: dict[str, Any]) -> None:
        os.write(self._fd, (encode(t, self._node, kind, fields) + "\n").encode())


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file in order; a last line cut off by a crash is left out.

    Raises ResultError for a file that cannot be read, a damaged line or a version that this emu does not know.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ResultError(
            f"this file of records cannot be read ({error.strerror})", where=str(path), fix="remove this damaged run"
        ) from None
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        yield _decode(line, f"{path}:{number}")


def _decode(line: bytes, where: str) -> dict[str, Any]:
    try:
        item = json.loads(line.decode())
    except (ValueError, RecursionError):
        item = None
    if not isinstance(item, dict):
        raise ResultError("this line is not a record", where=where, fix="remove the line or the damaged run")
    if item.get("v") != VERSION:
        raise ResultError(
            f"record version {item.get('v')!r} is not known (this emu reads {VERSION})",
            where=where,
            fix="read it with the emu that wrote it",
        )
    t = item.get("t")
    sound = {
        "t": isinstance(t, (int, float)) and abs(t) < _FOREVER,
        "node": isinstance(item.get("node"), str),
        "kind": isinstance(item.get("kind"), str),
    }
    for name, good in sound.items():
        if not good:
            raise ResultError(
                f"this record has no `{name}`, or a damaged one",
                where=where,
                fix="remove the line or the damaged run",
            )
    return item
