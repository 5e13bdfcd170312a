"""`emu status`: what is up."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, POSITIONAL, either, pick, running


def status(
    name: str | None = POSITIONAL,
    lab: str | None = LAB,
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    everything: bool = typer.Option(False, "--all", help="One line for every lab, also half-made ones."),
) -> None:
    """Show the nodes of a lab and whether they and the links live."""
    from emulator.lab.status import overview, report

    lab = either(name, lab)
    if everything or (lab is None and len(running()) != 1):
        _print_json(overview()) if as_json else _lines(overview())
        return
    found = report(pick(lab))
    if as_json:
        _print_json(found)
        return
    from emulator.cli.console import console
    from emulator.lab.status import table

    console().print(table(found))


def _lines(labs: list[dict[str, object]]) -> None:
    if not labs:
        print("no lab is up; start one with: emu up topologies/wan-10.yaml")
    for item in labs:
        known = item["runtime"] != "unknown"
        parts = f", runtime {item['runtime']}, links by {item['link_driver']}" if known else ""
        print(f"{item['lab']}: {item['phase']}{parts}")


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1))
