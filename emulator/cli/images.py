"""`emu images`: the container images that nodes run."""

from __future__ import annotations

import typer

app = typer.Typer(help="Build and list emu's container images.", no_args_is_help=True)


@app.command("build")
def build(
    names: list[str] = typer.Argument(None, help="base, torch; left out = all."),
    arch: str = typer.Option("", "--arch", help="amd64, arm64 or all (default: this host's)."),
    base: str | None = typer.Option(
        None, "--base", help="A Debian with Python 3.11 to start from, or `bootstrap` to make one without a registry."
    ),
) -> None:
    """Build images with the engine that answers; what is fetched is kept in the user's cache."""
    from emulator.core.errors import UsageError
    from emulator.images import build as images
    from emulator.runtimes.processor import host_arch

    archs = images.ARCHITECTURES if arch == "all" else (arch or host_arch(),)
    for one in archs:
        if one not in images.ARCHITECTURES:
            raise UsageError(f"{one!r} is not a processor of images", where="--arch", fix="use amd64, arm64 or all")
    for tag in images.build(names or (), archs, base, lambda line: typer.echo(line, err=True)):
        typer.echo(tag)


@app.command("list")
def show() -> None:
    """The images of emu, and which of them the engine has."""
    from emulator.images import build as images
    from emulator.runtimes.docker import engine, image

    engine.require()
    for name in images.names():
        for arch in images.ARCHITECTURES:
            tag = f"emu/{name}:{arch}"
            typer.echo(f"{tag:<18} {'built' if image.is_there(tag) else 'not built'}")
