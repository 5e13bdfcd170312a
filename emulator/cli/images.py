"""`emu images`: the container images that nodes run."""

from __future__ import annotations

from pathlib import Path

import typer

from emulator.cli.labs import path

app = typer.Typer(help="Build and list emu's container images.", no_args_is_help=True)


NAMES = typer.Argument(None, help="base, torch, emu; left out = all.")
ARCH = typer.Option("", "--arch", help="amd64, arm64 or all (default: this host's).")
BASE = typer.Option(
    None, "--base", help="A Debian with Python 3.11 to start from, or `bootstrap` to make one without a registry."
)


@app.command("build")
def build(names: list[str] = NAMES, arch: str = ARCH, base: str | None = BASE) -> None:
    """Build images with the engine that answers; what is fetched is kept in the user's cache."""
    from emulator.experiment.signals import orderly
    from emulator.images import build as images

    with orderly():
        for tag in images.build(names or (), _architectures(arch), base, _say):
            typer.echo(tag)


@app.command("prepare")
def prepare(
    names: list[str] = NAMES,
    arch: str = ARCH,
    base: str | None = BASE,
    to: Path = typer.Option(Path("build/images"), "--to", help="Where to write them.", parser=path),
) -> None:
    """Write what `docker buildx bake -f images/docker-bake.hcl` builds images from."""
    from emulator.experiment.signals import orderly
    from emulator.images import build as images

    with orderly("images that were whole are kept, and nothing half-made is left"):
        for folder in images.prepare(names or (), _architectures(arch), base, to, _say):
            typer.echo(folder)


def _architectures(arch: str) -> tuple[str, ...]:
    from emulator.core.errors import UsageError
    from emulator.core.processor import ARCHITECTURES, host_arch

    found = ARCHITECTURES if arch == "all" else (arch or host_arch(),)
    for one in found:
        if one not in ARCHITECTURES:
            raise UsageError(f"{one!r} is not a processor of images", where="--arch", fix="use amd64, arm64 or all")
    return found


def _say(line: str) -> None:
    typer.echo(line, err=True)


@app.command("list")
def show() -> None:
    """The images of emu, and which of them the engine has."""
    from emulator.core.processor import ARCHITECTURES
    from emulator.images import build as images
    from emulator.runtimes.docker import engine, image
    from emulator.runtimes.docker.reference import how_to_build

    engine.require()
    for name in images.names():
        for arch in ARCHITECTURES:
            tag = f"emu/{name}:{arch}"
            state = "built" if image.is_there(tag) else "not built"
            if state == "built" and not image.is_current(tag):
                state = f"built, with another version of emu; {how_to_build(tag, arch)}"
            typer.echo(f"{tag:<18} {state}")
