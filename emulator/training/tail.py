"""Follow a growing record file: each whole new line once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError

if TYPE_CHECKING:
    from pathlib import Path


class Tail:
    """The new records of a file each time it is asked. Use as a context, which closes the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._rest = b""

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def new(self) -> list[dict[str, Any]]:
        """The records since the last call; raises ResultError for a damaged line (a disk that was full)."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        try:
            return [json.loads(line) for line in lines]
        except ValueError:
            raise ResultError(
                "a line is not a record", where=str(self._path), fix="see that the disk has space, then run again"
            ) from None
