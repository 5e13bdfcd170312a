"""Build emu's images with the engine: one folder under `images/` each, for one processor after the other.

A folder has a Dockerfile, whose BASE is another folder's image or one of a registry, and pinned requirements. The
context that the engine gets is made here: the Dockerfile, `site` (the packages, unpacked) and `emulator`.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.cache import user_cache
from emulator.core.errors import HostError, UsageError
from emulator.images import bootstrap, wheels
from emulator.runtimes.docker import engine
from emulator.runtimes.processor import host_arch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from docker.api.client import APIClient

PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE.parent / "images"
BOOTSTRAP = "bootstrap"
ARCHITECTURES = ("amd64", "arm64")
#: the processor model that QEMU shows to programs of an image by default: the Raspberry Pi 4's
QEMU_CPU = "cortex-a72"


def names() -> list[str]:
    """All images, each after the one that it is built on."""
    found = sorted(path.parent.name for path in FOLDER.glob("*/Dockerfile"))
    return sorted(found, key=lambda name: (parent(name) is not None, name))


def parent(name: str) -> str | None:
    """The image of ours that this one is built on."""
    for line in (FOLDER / name / "Dockerfile").read_text().splitlines():
        if line.startswith("ARG BASE=emu/"):
            return line.removeprefix("ARG BASE=emu/")
    return None


def build(wanted: Sequence[str], archs: Sequence[str], base: str | None, say: Callable[[str], None]) -> list[str]:
    """Build images (all when none is named) with those that they stand on; returns the tags.

    Raises UsageError for an unknown name, HostError and RuntimeFailure when one cannot be built.
    """
    if not FOLDER.is_dir():
        raise HostError("there is no images folder beside the package", fix="build images from a checkout of emu")
    known = names()
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no image {name!r}", fix=f"use one of {', '.join(known)}")
    chosen = {*(wanted or known)}
    chosen |= {found for name in tuple(chosen) if (found := parent(name)) is not None}
    client = engine.client()
    made = []
    for arch in archs:
        for name in (name for name in known if name in chosen):
            say(f"building emu/{name}:{arch}")
            made.append(_build(client, name, arch, base, say))
    return made


def _build(client: APIClient, name: str, arch: str, base: str | None, say: Callable[[str], None]) -> str:
    parts = {"Dockerfile": FOLDER / name / "Dockerfile", "site": _site(name, arch, say)}
    arguments: dict[str, str] = {}
    if (below := parent(name)) is not None:
        base = f"emu/{below}:{arch}"
    else:
        parts["emulator"] = PACKAGE
        arguments["QEMU_CPU"] = QEMU_CPU if arch == "arm64" else ""
        base = _bootstrap(client, arch, say) if base == BOOTSTRAP else base
    if base:
        arguments["BASE"] = base
    return _run(client, f"emu/{name}:{arch}", arch, parts, arguments)


def _bootstrap(client: APIClient, arch: str, say: Callable[[str], None]) -> str:
    archive = bootstrap.tar(arch, arch != host_arch(), _cache(), say)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(bootstrap.DOCKERFILE)
        file.flush()
        return _run(client, f"emu/bootstrap:{arch}", arch, {"Dockerfile": Path(file.name), "root.tar": archive}, {})


def _site(name: str, arch: str, say: Callable[[str], None]) -> Path:
    """The unpacked packages of an image, from the cache where they are the pinned ones."""
    requirements = FOLDER / name / f"requirements-{arch}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    kept = _cache() / f"site-{name}-{arch}-{digest}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        say(f"fetching the packages of emu/{name} for {arch}")
        wheels.install(requirements, arch, kept)
    return kept


def _cache() -> Path:
    return user_cache() / "images"


def _run(client: APIClient, tag: str, arch: str, parts: dict[str, Path], arguments: dict[str, str]) -> str:
    """Have the engine build; its complaint becomes one sentence."""
    with tempfile.TemporaryFile() as context, engine.told(tag, fix="see `docker info`, and free disk space"):
        _pack(context, parts)
        context.seek(0)
        lines: Iterator[dict[str, Any]] = client.build(
            fileobj=context, custom_context=True, tag=tag, platform=f"linux/{arch}", buildargs=arguments, rm=True,
            forcerm=True, decode=True,
        )  # fmt: skip
        for line in lines:
            if "error" in line:
                raise _failure(tag, str(line["error"]))
    return tag


def _failure(tag: str, said: str) -> HostError:
    text = " ".join(said.split())[:300]
    if "no space left" in text:
        return HostError("the engine's disk is full", where=tag, fix="free space (docker system prune)")
    if "pull access denied" in text or "dial tcp" in text or "manifest" in text:
        fix = f"give it one that is there, or make one: --base {BOOTSTRAP}"
        return HostError(f"its base image cannot be had ({text})", where=tag, fix=fix)
    return HostError(f"it cannot be built ({text})", where=tag, fix="see `docker info`")


def _pack(context: Any, parts: dict[str, Path]) -> None:
    """A tar of the parts that is the same for the same contents: sorted, no times, nobody's files."""

    def plain(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if "__pycache__" in item.name:
            return None
        item.mtime, item.uid, item.gid, item.uname, item.gname = 0, 0, 0, "root", "root"
        return item

    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, path in sorted(parts.items()):
            archive.add(path, name, filter=plain)  # a directory's entries in order of their names
