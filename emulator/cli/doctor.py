"""`emu doctor`: what this host can do, and what to mend."""

from __future__ import annotations

import typer


def doctor(as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a list.")) -> None:
    """Check this host: root, namespaces, cgroups, link drivers, data, framework. Exit status 1 if no lab can run."""
    from emulator.lab.doctor import checks

    found = checks()
    if as_json:
        import json
        from dataclasses import asdict

        print(json.dumps([asdict(check) for check in found], indent=1))
    else:
        from emulator.cli.console import console

        screen = console()
        marks = {"ok": "[green]ok  [/]", "note": "[yellow]note[/]", "bad": "[red]bad [/]"}
        for check in found:
            screen.print(f"{marks[check.state]} {check.name}: {check.fact}", highlight=False)
            if check.fix:
                screen.print(f"       -> {check.fix}", highlight=False, soft_wrap=True)
    if any(check.state == "bad" for check in found):
        raise typer.Exit(1)
