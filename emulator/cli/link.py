"""`emu link`: look after the cables of a running lab."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, pick

app = typer.Typer(help="Look after the cables of a running lab.", no_args_is_help=True)


@app.command("restart")
def restart(lab: str | None = LAB) -> None:
    """Bring a dead relay back; addresses, routes and TCP flows stay."""
    found = pick(lab)
    found.links.restart(found.id)
    health = found.links.health(found.id)
    state = "carry traffic" if health.alive else "are dead"
    print(f"{found.name}: links by {found.links.name} {state}{_why(health.detail)}")


@app.command("health")
def health(lab: str | None = LAB) -> None:
    """Say whether the cables carry traffic, and how late they deliver."""
    found = pick(lab)
    state = found.links.health(found.id)
    parts = [f"links by {found.links.name}", "alive" if state.alive else "dead", state.priority]
    if state.lateness_p99 is not None:
        parts.append(f"lateness p50 {state.lateness_p50}, p99 {state.lateness_p99}")
    parts.append(f"{state.restarts} restarts")
    print(", ".join(part for part in parts if part) + _why(state.detail))
    if not state.alive:
        raise typer.Exit(1)


def _why(detail: str) -> str:
    return f" ({detail})" if detail else ""
