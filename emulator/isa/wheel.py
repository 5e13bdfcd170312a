"""A wheel file: what it is for, and its contents as they are installed."""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from emulator.core.errors import UsageError


@dataclass(frozen=True)
class Wheel:
    """A wheel's name and tags, which its file name holds."""

    path: Path
    name: str
    version: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    def for_python(self, version: str) -> bool:
        """Whether a CPython of that version ("3.11") takes it."""
        major, minor = (int(part) for part in version.split("."))
        for tag in self.pythons:
            kind, number = tag[:2], tag[2:]
            if kind == "py" and number in (str(major), f"{major}{minor}"):
                return True
            if kind == "cp" and number == f"{major}{minor}":
                return True
            if "abi3" in self.abis and kind == "cp" and number[1:].isdigit() and int(number[1:]) <= minor:
                return True
        return False

    def pack(self, archive: tarfile.TarFile, folder: str) -> None:
        """Add its contents, below `folder`, where an installer would put them; raises UsageError if it is damaged."""
        try:
            with zipfile.ZipFile(self.path) as opened:
                for item in opened.infolist():
                    place = _installed(item.filename)
                    if place is None or item.is_dir():
                        continue
                    entry = tarfile.TarInfo(f"{folder}/{place}")
                    entry.size, entry.mode = item.file_size, 0o755 if item.external_attr >> 16 & stat.S_IXUSR else 0o644
                    with opened.open(item) as content:
                        archive.addfile(entry, content)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
            raise UsageError("the wheel is damaged", where=str(self.path), fix="fetch it again") from None


def read(path: Path) -> Wheel:
    """The wheel, not looked into; raises UsageError for one of another system than Linux on ARM64."""
    parts = path.name.removesuffix(".whl").split("-")
    if len(parts) not in (5, 6):
        raise UsageError(
            f"{path.name} is no wheel's name", fix="keep the name that it was published under (NAME-VERSION-...whl)"
        )
    pythons, abis, platforms = (tuple(part.split(".")) for part in parts[-3:])
    if not any(name == "any" or _fits(name) for name in platforms):
        raise UsageError(
            f"the wheel is for {', '.join(platforms)}, and the devices are ARM64 Linux",
            where=path.name,
            fix=f"fetch that one: pip download --no-deps --only-binary=:all: --platform manylinux_2_28_aarch64 "
            f"--python-version 311 {parts[0]}=={parts[1]}",
        )
    return Wheel(path, parts[0], parts[1], pythons, abis, platforms)


def _fits(platform: str) -> bool:
    return platform.startswith(("manylinux", "musllinux", "linux")) and platform.endswith("_aarch64")


def _installed(name: str) -> str | None:
    """Where an installer puts a member; None = nowhere that Python looks, or outside."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        return None
    if parts[0].endswith(".data"):
        return "/".join(parts[2:]) if parts[1:2] in (("purelib",), ("platlib",)) and len(parts) > 2 else None
    return "/".join(parts)
