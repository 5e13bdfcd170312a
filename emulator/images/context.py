"""What a builder gets to build an image from: the Dockerfile and the files that it copies."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: in a package that is installed, what a checkout has beside it
_SHIPPED = "emulator/shipped"
#: packages, with their bytecode; of all else it is left out, being of whoever ran it last
_SITE = "site"


def pack(archive: IO[bytes], parts: Mapping[str, Path]) -> None:
    """Write a tar of the parts that is the same for the same contents: sorted, no times, nobody's files."""

    def plain(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        foreign = "__pycache__" in item.name and not item.name.startswith(f"{_SITE}/")
        if foreign or item.name.startswith(_SHIPPED):
            return None
        item.mtime, item.uid, item.gid, item.uname, item.gname = 0, 0, 0, "root", "root"
        return item

    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in sorted(parts.items()):
            tar.add(path, name, filter=plain)  # a directory's entries in order of their names


def write(folder: Path, parts: Mapping[str, Path]) -> None:
    """Put the parts into a new folder, the packages by hard links where the file system is theirs."""
    for name, path in sorted(parts.items()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = _linked if name == _SITE else shutil.copy
        if path.is_dir():
            ignored = None if name == _SITE else shutil.ignore_patterns("__pycache__", Path(_SHIPPED).name)
            shutil.copytree(path, target, symlinks=True, copy_function=copy, ignore=ignored)
        else:
            copy(path, target)


def _linked(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy(source, target)
