"""A `Topology`: a file that reads and type-checks, with its lines at hand; not yet resolved."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.core.yaml_file import Document
    from emulator.topology.model import TopologyFile


@dataclass(frozen=True)
class Topology:
    """What the user wrote, checked key by key. `document` knows the line of everything in `spec`."""

    spec: TopologyFile
    document: Document

    @property
    def path(self) -> str:
        """The file's path as it was given."""
        return self.document.path

    @property
    def name(self) -> str:
        """The name in the file, else the file's own in the letters that a lab's name may have."""
        if self.spec.name:
            return self.spec.name
        stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(self.path).stem.lower()).strip("-")
        return stem[:40] or "lab"


def load(path: str | os.PathLike[str]) -> Topology:
    """Read and check a topology file; raises TopologyError with file, line and remedy."""
    from emulator.core.yaml_file import read

    return check(read(Path(path)))


def check(document: Document) -> Topology:
    """Check what was read against the models; raises TopologyError."""
    from pydantic import ValidationError

    from emulator.topology.explain import explain

    with _without_plugins():
        from emulator.topology.model import TopologyFile

        try:
            return Topology(TopologyFile.model_validate(document.data), document)
        except ValidationError as error:
            raise explain(error, document) from None


@contextlib.contextmanager
def _without_plugins() -> Iterator[None]:
    """pydantic looks for plug-ins in every installed distribution (40 ms); emu has none to find."""
    key = "PYDANTIC_DISABLE_PLUGINS"
    if key in os.environ:
        yield
        return
    os.environ[key] = "__all__"
    try:
        yield
    finally:
        os.environ.pop(key, None)
