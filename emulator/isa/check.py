"""`check`: whatever is named - images, wheels, libraries, programs - is run on a device's core."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import UsageError
from emulator.isa import elf, packages, program, wheel
from emulator.isa.target import ARCH, for_programs, in_containers
from emulator.runtimes.docker import engine, image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from emulator.isa.finding import Finding
    from emulator.isa.target import Target

#: what wheels and libraries are put into: the first that is built
DEFAULT_IMAGES = (f"{image.TRAINING}:{ARCH}", f"{image.PLAIN}:{ARCH}")


@dataclass
class Request:
    """What was named, by its kind."""

    images: list[str] = field(default_factory=list)
    wheels: list[wheel.Wheel] = field(default_factory=list)
    libraries: list[Path] = field(default_factory=list)
    programs: list[tuple[Path, elf.Elf]] = field(default_factory=list)


def read(subjects: Sequence[str], base: str | None) -> Request:
    """Tell images, wheels, libraries and programs apart; raises UsageError for what is none or cannot be checked.

    `base` is the image that dynamic programs, wheels and libraries are put into, if one was named.
    """
    request = Request()
    for text in subjects:
        path = Path(text)
        if not text.strip():
            raise UsageError("an empty name was given", fix="name an image, a wheel, a library or a program")
        if path.is_dir():
            raise UsageError(f"{text} is a directory", fix="name an image, a wheel, a library or a program")
        if not path.exists():
            if text.endswith((".whl", ".so")) or text.startswith((".", "/", "~")):
                raise UsageError(f"there is no file {text}", fix="check its path")
            request.images.append(f"{text}:{ARCH}" if text.startswith("emu/") and ":" not in text else text)
        elif text.endswith(".whl"):
            request.wheels.append(wheel.read(path))
        else:
            _add_elf(request, path, base)
    if base and request.images and not (request.wheels or request.libraries or request.programs):
        raise UsageError("--image has no effect on images", fix="leave it out")
    names = [path.name for path in request.libraries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two libraries are named {twice}", fix="check them one after the other")
    return request


def check(
    request: Request, target: Target, *, base: str | None, seconds: float, arguments: Sequence[str],
    say: Callable[[str], None],
) -> Iterator[Finding]:  # fmt: skip
    """Check all of a request, telling with `say` what runs it; a finding each as it comes.

    Raises HostError, UsageError and RuntimeFailure.
    """
    here = [path for path, kind in request.programs if not (kind.loader or base)]
    if here:
        _, by = for_programs(target)
        say(f"programs as {target}, by {by}")
    for path in here:
        yield program.check(path, arguments, target, seconds)
    inside = [path for path, _ in request.programs if path not in here]
    if not (inside or request.images or request.wheels or request.libraries):
        return
    by = in_containers(target)
    client = engine.client()
    for path in inside:
        assert base is not None, "read() refuses such a program without an image"
        say(f"{path.name} in {base} as {target}, by {by}")
        yield program.check_in_image(client, path, arguments, base, target, seconds)
    if request.wheels or request.libraries:
        into = base or next((name for name in DEFAULT_IMAGES if image.is_there(name)), DEFAULT_IMAGES[-1])
        say(f"in {into} as {target}, by {by}")
        yield from packages.check(client, into, target, seconds, request.wheels, request.libraries)
    for name in request.images:
        say(f"{name} as {target}, by {by}")
        yield from packages.check(client, name, target, seconds)


def _add_elf(request: Request, path: Path, base: str | None) -> None:
    if not path.is_file():
        raise UsageError(f"{path} is no regular file", fix="name a wheel, a program or a library")
    try:
        kind = elf.read(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})", fix="check its permissions") from None
    if kind is None:
        raise UsageError(
            f"{path} is no wheel and no whole ELF program or library",
            fix="name one of these, or an image that is no file here",
        )
    if kind.machine != ARCH:
        raise UsageError(
            f"{path} is for {kind.machine}, and the device runs {ARCH}", fix="compile it with aarch64-linux-gnu-gcc"
        )
    if kind.library:
        request.libraries.append(path)
        return
    if kind.loader and not base:
        raise UsageError(
            f"{path} needs libraries of a system ({kind.loader})",
            fix=f"name an image that has them (--image {DEFAULT_IMAGES[-1]}), or link it statically (-static)",
        )
    request.programs.append((path, kind))
