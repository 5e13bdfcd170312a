"""Build emu's images: one folder under `images/` each, for one processor after the other.

A folder has a Dockerfile, whose BASE is another folder's image or one of a registry, and may have pinned
requirements. The context that a builder gets is made here: the folder's files, `site` (the packages, unpacked),
`emulator` (in those that stand on no other image of ours) and `shipped` (in the controller's).
"""

from __future__ import annotations

import difflib
import hashlib
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import code
from emulator.core.errors import UsageError
from emulator.core.processor import host_arch
from emulator.core.shipped import PACKAGE, shipped
from emulator.images import bootstrap, bytecode, cache, context, wheels
from emulator.images.base import check_base
from emulator.images.builder import Order, remove_unused
from emulator.images.builder import build as run
from emulator.runtimes.docker import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from docker.api.client import APIClient

FOLDER = shipped("images")
BOOTSTRAP = "bootstrap"
_BESIDE = ("images", "topologies", "experiments")


def names() -> list[str]:
    """All images, each after the one that it is built on."""
    return sorted(
        (path.parent.name for path in FOLDER.glob("*/Dockerfile")), key=lambda name: (len(_below(name)), name)
    )


def parent(name: str) -> str | None:
    """The image of ours that this one is built on."""
    found = _default_base(name)
    return found.removeprefix("emu/") if found.startswith("emu/") else None


def _below(name: str) -> list[str]:
    """All images of ours that this one stands on."""
    found = parent(name)
    return [found, *_below(found)] if found else []


def _default_base(name: str) -> str:
    for line in (FOLDER / name / "Dockerfile").read_text().splitlines():
        if line.startswith("ARG BASE="):
            return line.removeprefix("ARG BASE=")
    raise AssertionError(f"images/{name}/Dockerfile names no BASE")


def chosen(wanted: Sequence[str]) -> list[str]:
    """The images named (all when none is) with those that they stand on, in order; raises UsageError."""
    known = names()
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
            raise UsageError(f"there is no image {name!r}", fix=hint)
    needed = {*(wanted or known)} | {below for name in wanted for below in _below(name)}
    return [name for name in known if name in needed]


def build(wanted: Sequence[str], archs: Sequence[str], base: str | None, say: Callable[[str], None]) -> list[str]:
    """Build images (all when none is named) with those that they stand on; returns the tags.

    What a tag stood for before is removed, unless something uses it or it has another name. Raises UsageError for
    an unknown name, HostError and RuntimeFailure when one cannot be built; then nothing of that one is left.
    """
    wanted = chosen(wanted)
    client = engine.client()
    with cache.alone(say):
        return [tag for arch in archs for tag in _build_all(client, wanted, arch, _root(client, base, arch, say), say)]


def _build_all(
    client: APIClient, wanted: Sequence[str], arch: str, root: str, say: Callable[[str], None]
) -> Sequence[str]:
    replaced: list[str] = []
    orders = {name: _order(name, arch, root) for name in wanted}
    for name, order in orders.items():
        say(f"building {order.tag}")
        with _labelled(_parts(name, arch, say)) as parts:
            replaced += _build(client, order, parts)
    remove_unused(client, replaced[::-1])
    return [order.tag for order in orders.values()]


@contextmanager
def _labelled(parts: dict[str, Path]) -> Iterator[dict[str, Path]]:
    """The parts, the Dockerfile of those with emu's code saying which version that is."""
    if "emulator" not in parts:
        yield parts
        return
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{parts['Dockerfile'].read_text()}LABEL {code.LABEL}={code.digest()}\n")
        file.flush()
        yield parts | {"Dockerfile": Path(file.name)}


def prepare(
    wanted: Sequence[str], archs: Sequence[str], base: str | None, folder: Path, say: Callable[[str], None]
) -> list[Path]:
    """Write the contexts of images to `folder/<name>-<arch>`, for `docker buildx bake`; returns them.

    With `base` "bootstrap" its image is built as well, by the engine that answers. Raises as `build`.
    """
    made = []
    wanted = chosen(wanted)
    for arch in archs:
        if base == BOOTSTRAP:
            client = engine.client()
            with cache.alone(say):
                _root(client, base, arch, say)
        for name in wanted:
            target = folder / f"{name}-{arch}"
            shutil.rmtree(target, ignore_errors=True)
            with _labelled(_parts(name, arch, say)) as parts:
                made.append(cache.made(target, partial(context.write, parts=parts), say))
    return made


def _root(client: APIClient, base: str | None, arch: str, say: Callable[[str], None]) -> str:
    """What images for a processor start from, as the engine knows it; seen to have the right Python."""
    if base == BOOTSTRAP:
        archive = bootstrap.tar(arch, arch != host_arch(), cache.directory(), say)
        tag = f"emu/{BOOTSTRAP}:{arch}"
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(bootstrap.DOCKERFILE)
            file.flush()
            replaced = _build(client, Order(tag, arch, {}), {"Dockerfile": Path(file.name), "root.tar": archive})
        remove_unused(client, replaced)
        return tag
    found = base or next(_default_base(name) for name in names() if parent(name) is None)
    check_base(client, found, arch)
    return found


def _order(name: str, arch: str, root: str) -> Order:
    below = parent(name)
    if below is not None:
        return Order(f"emu/{name}:{arch}", arch, {"BASE": f"emu/{below}:{arch}"})
    return Order(f"emu/{name}:{arch}", arch, {"BASE": root, "ARCH": arch})


def _parts(name: str, arch: str, say: Callable[[str], None]) -> dict[str, Path]:
    """What the image's context holds, by its place there."""
    parts = {path.name: path for path in (FOLDER / name).iterdir() if not path.name.startswith("requirements")}
    if (FOLDER / name / f"requirements-{arch}.txt").exists():
        parts["site"] = _site(name, arch, say)
    if parent(name) is None:
        parts["emulator"] = PACKAGE
    if "COPY shipped" in parts["Dockerfile"].read_text():
        parts |= {f"shipped/{kind}": shipped(kind) for kind in _BESIDE}
    return parts


def _site(name: str, arch: str, say: Callable[[str], None]) -> Path:
    """The unpacked packages of an image, from the cache where they are the pinned ones."""
    requirements = FOLDER / name / f"requirements-{arch}.txt"
    compiled = bytecode.VERSION if bytecode.can_compile() else "no"
    digest = hashlib.sha256(requirements.read_bytes() + compiled.encode()).hexdigest()[:12]

    def make(folder: Path) -> None:
        say(f"fetching the packages of emu/{name} for {arch}")
        wheels.install(requirements, arch, folder)
        if bytecode.can_compile():
            bytecode.compile_all(folder, _place(name))
        else:
            say(f"note: this Python is not {wheels.PYTHON}, so they are not compiled, and nodes import them slowly")

    return cache.made(cache.directory() / f"site-{name}-{arch}-{digest}", make, say)


def _place(name: str) -> str:
    """Where an image has its packages."""
    lines = (FOLDER / name / "Dockerfile").read_text().splitlines()
    return next(line.split()[2] for line in lines if line.startswith("COPY site "))


def _build(client: APIClient, order: Order, parts: dict[str, Path]) -> list[str]:
    """Build; returns the id of the image that had the tag before and has it no longer, if there was one."""
    before = _id(client, order.tag)
    folder = cache.directory()
    with ExitStack() as stack:
        with cache.writing(folder):
            file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            context.pack(file, parts)
            file.seek(0)
        run(client, order, file)
    return [before] if before and before != _id(client, order.tag) else []


def _id(client: APIClient, tag: str) -> str:
    from docker.errors import ImageNotFound

    with engine.told(tag):
        try:
            return str(client.inspect_image(tag)["Id"])
        except ImageNotFound:
            return ""
