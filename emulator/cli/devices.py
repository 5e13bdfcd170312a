"""`emu devices`: which devices there are and what is known of each; `measure` makes a profile of a real board."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from emulator.cli.labs import path

if TYPE_CHECKING:
    from emulator.devices.profile import DeviceProfile

#: columns of the terminal from which on the titles fit
FULL_WIDTH = 110

app = typer.Typer(help="What devices are worth: their profiles, and measuring a board of your own.")


@app.callback(invoke_without_command=True)
def devices(
    context: typer.Context,
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """List the devices that a topology may name; a dash = not known. Start with: emu devices show rpi-4"""
    if context.invoked_subcommand is not None:
        if as_json:
            from emulator.core.errors import UsageError

            fix = f"write it behind: emu devices {context.invoked_subcommand} --json"
            raise UsageError("--json stands before the verb", where="emu devices", fix=fix)
        return
    from emulator.devices import show

    found, wrong = show.readable()
    for error in wrong:
        print(f"left out: {error}", file=sys.stderr)
    if as_json:
        import json

        print(json.dumps([show.as_dict(one) for one in found], indent=1))
    else:
        _table(found)
    if wrong:
        raise typer.Exit(wrong[0].exit_code)


def _table(found: list[DeviceProfile]) -> None:
    from rich.table import Table
    from rich.text import Text

    from emulator.cli.console import console
    from emulator.devices import show

    screen = console()
    # The title goes where it does not fit: the names say it as well.
    columns = show.COLUMNS if screen.width >= FULL_WIDTH else show.COLUMNS[:-1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns:
        left = title in ("device", "title")
        table.add_column(
            title, justify="left" if left else "right", no_wrap=not left, overflow="fold", vertical="bottom"
        )
    known = {one.name for one in found}
    for one in found:
        if one.extends not in known:
            table.add_row(*(Text(cell) for cell in show.row(one)[: len(columns)]))
    screen.print(table)
    for one in found:
        if one.extends in known:
            screen.print(Text(f"variant {one.name}: {show.differences(one)}"))
    screen.print(Text("a dash = not known; every figure with its source: emu devices show NAME"))


@app.command("show")
def show(
    name: str = typer.Argument(help="A device, e.g. rpi-4."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, values in base units."),
) -> None:
    """Show every figure of a device with its unit, conditions and source, and what is not known."""
    from emulator.core.errors import TopologyError, UsageError
    from emulator.devices import show as shown
    from emulator.devices.profile import profile

    try:
        device = profile(name)
    except TopologyError as error:
        raise UsageError(error.what, where="emu devices show", fix=error.fix) from None
    if as_json:
        import json

        print(json.dumps(shown.as_dict(device), indent=1))
        return
    from rich.table import Table
    from rich.text import Text

    from emulator.cli.console import console

    screen = console()
    variant = f", a variant of {device.extends}" if device.extends else ""
    core = f", core {device.cpu_model}" if device.cpu_model else ""
    screen.print(Text(f"{device.name}: {device.title}{variant}{core}", style="bold"))
    screen.print(Text(str(device.path), style="dim"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure", no_wrap=True, overflow="fold")
    table.add_column("value", overflow="fold", ratio=1)
    table.add_column("source", overflow="fold", ratio=1)
    for fact in shown.facts(device):
        table.add_row(Text(fact.name), Text(fact.value), Text(fact.source, style="dim"))
    if table.row_count:
        screen.print(table)
    screen.print(Text(f"not known: {', '.join(shown.unknown(device)) or 'nothing'}"))


@app.command("measure")
def measure(
    out: Path = typer.Option(
        Path("my-board.yaml"), "--out", help="The profile to write; its name is the device's.", parser=path
    ),
    title: str = typer.Option("", "--title", help="What the board is called (default: what its firmware says)."),
    seconds: float = typer.Option(2.0, "--seconds", help="How long each kernel is measured, for one core and for all."),
    interface: str = typer.Option("", "--interface", help="The network port (default: that of the default route)."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is there."),
) -> None:
    """Measure this machine with emu's own kernels and write a profile of it; run it on a real board.

    Needs Python and numpy (torch for its part); also as `python -m emulator.devices.measure`.
    """
    from emulator.devices import measure as board

    board.run(out, title=title, seconds=seconds, interface=interface, force=force)
