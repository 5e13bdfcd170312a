"""Record files of a simulated run: one for each node, made when it first has something to say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from emulator.core.errors import ResultError
from emulator.core.record import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Records:
    """Appends to `<out>/<node>.jsonl`, and hands each record to `on_record` as a reader would see it."""

    def __init__(self, out: Path, nodes: list[str], on_record: Callable[[dict[str, Any]], None] | None) -> None:
        self.directory = out
        self._on_record = on_record
        self._files: dict[str, TextIO] = {}
        try:
            out.mkdir(parents=True, exist_ok=True)
            for node in nodes:
                self._files[node] = (out / f"{node}.jsonl").open("w", buffering=1, encoding="utf-8")
        except OSError as error:
            self.close()
            raise self._failed(error) from error

    def write(self, t: float, node: str, kind: str, fields: dict[str, Any]) -> None:
        """One record; raises ResultError if it cannot be written."""
        line = encode(t, node, kind, fields)
        try:
            self._files[node].write(line + "\n")
        except OSError as error:
            raise self._failed(error) from error
        if self._on_record is not None:
            self._on_record(json.loads(line))

    def close(self) -> None:
        """Close all files; raises ResultError if what is left cannot be written."""
        failed: OSError | None = None
        for file in self._files.values():
            try:
                file.close()
            except OSError as error:
                failed = error
        if failed is not None:
            raise self._failed(failed) from failed

    def _failed(self, error: OSError) -> ResultError:
        return ResultError(
            f"records cannot be written ({error.strerror})", where=str(self.directory), fix="free space, or use --out"
        )
