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

    Raises ResultError for a damaged line or a version that this emu does not know.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                item = json.loads(line)
            except json.JSONDecodeError:
                raise ResultError(
                    "this line is not a record", where=f"{path}:{number}", fix="remove the line or the damaged run"
                ) from None
            if item.get("v") != VERSION:
                raise ResultError(
                    f"record version {item.get('v')!r} is not known (this emu reads {VERSION})",
                    where=f"{path}:{number}",
                    fix="read it with the emu that wrote it",
                )
            yield item
