"""`emu link`: look after the cables of a running lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from emulator.cli.labs import LAB, POSITIONAL, either, pick

if TYPE_CHECKING:
    from emulator.core.units import Delay

app = typer.Typer(help="Look after the cables of a running lab.", no_args_is_help=True)


@app.command("restart")
def restart(name: str | None = POSITIONAL, lab: str | None = LAB) -> None:
    """Bring a dead relay back; addresses, routes and TCP flows stay."""
    found = pick(either(name, lab))
    found.links.restart(found.id)
    health = found.links.health(found.id)
    state = "carry traffic" if health.alive else "are dead"
    print(f"{found.name}: links by {found.links.name} {state}{_why(health.detail)}")


@app.command("health")
def health(name: str | None = POSITIONAL, lab: str | None = LAB) -> None:
    """Say whether the cables carry traffic, and how late they deliver."""
    from emulator.core.units import Delay
    from emulator.core.words import counted

    found = pick(either(name, lab))
    state = found.links.health(found.id)
    parts = [f"links by {found.links.name}", "alive" if state.alive else "dead", state.priority]
    if state.lateness_p99 is not None:
        scale = found.plan.time_scale
        real = (
            ""
            if scale == 1
            else f" (real; p99 {_time(Delay(state.lateness_p99 / scale))} emulated, time scale {scale:g})"
        )
        parts.append(f"lateness p50 {_time(state.lateness_p50)}, p99 {_time(state.lateness_p99)}{real}")
    parts.append(counted(state.restarts, "restart"))
    print(", ".join(part for part in parts if part) + _why(state.detail))
    if not state.alive:
        raise typer.Exit(1)


def _time(delay: Delay | None) -> str:
    """A measured time in three digits: the rest is noise."""
    if delay is None:
        return "unknown"
    return f"{delay * 1e6:.3g} us" if delay < 1e-3 else f"{delay * 1e3:.3g} ms"


def _why(detail: str) -> str:
    return f" ({detail})" if detail else ""
