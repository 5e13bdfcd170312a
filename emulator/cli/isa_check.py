"""`emu isa-check`: what dies on a device's core, before a run does."""

from __future__ import annotations

import typer

_MARKS = {"ok": "[green]ok  [/]", "unknown": "[yellow]note[/]", "dies": "[red]bad [/]", "late": "[red]bad [/]"}


def isa_check(
    subjects: list[str] = typer.Argument(
        metavar="IMAGE|WHEEL|PROGRAM...", help="Images, ARM64 wheels (.whl), shared libraries (.so), ELF programs."
    ),
    device: str = typer.Option("rpi-4", "--device", "-d", help="Device whose core is asked for."),
    image: str | None = typer.Option(
        None,
        "--image",
        help="What wheels and libraries are put into (default: emu/torch or emu/base), or a dynamic program.",
    ),
    arguments: str = typer.Option("", "--args", help="Arguments of a program, as a shell takes them."),
    timeout: float = typer.Option(300.0, "--timeout", min=1, help="Seconds that each may take."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a list."),
) -> None:
    """Run programs and import packages on a device's exact core, and tell what dies, e.g. of SIGILL.

    An image's packages are imported one by one, numpy and torch also compute.
    Wheels see each other and the image's packages. A static program runs on
    this host with your rights, all else in a container without network.

    Exit status 1 if something dies, or nothing was learnt of what was named.

    Not caught: code that this does not reach, and AES and SHA instructions,
    which QEMU's cores have and the Pi 3 and 4 have not.
    """
    import shlex

    from rich.markup import escape

    from emulator.cli.console import console
    from emulator.core.errors import UsageError
    from emulator.isa import check as isa
    from emulator.isa.finding import Finding, verdict
    from emulator.isa.target import of_device

    target = of_device(device)
    request = isa.read(subjects, image)
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise UsageError(str(error), where="--args", fix="close the quotes") from None
    if words and not request.programs:
        raise UsageError("only a program has arguments", where="--args", fix="name a program, or leave it out")
    screen = console()
    how: list[str] = []

    def say(line: str) -> None:
        how.append(line)
        show(line)

    def show(line: str) -> None:
        if not as_json:
            screen.print(line, highlight=False, soft_wrap=True)

    found: list[Finding] = []
    for one in isa.check(request, target, base=image, seconds=timeout, arguments=words, say=say):
        found.append(one)
        show(f"{_MARKS[one.outcome]} {escape(f'{one.title:<28} {one.words}')}")
    good = not any(one.bad for one in found)
    last = verdict(found, str(target), target.core)
    if as_json:
        import json
        from dataclasses import asdict

        facts = {"device": target.device, "core": target.core, "ok": good, "verdict": last, "how": how}
        print(json.dumps(facts | {"findings": [asdict(one) for one in found]}, indent=1))
    show(last)
    if not good:
        raise typer.Exit(1)
