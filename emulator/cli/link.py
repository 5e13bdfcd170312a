"""`emu link`: look after the cables of a running lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from emulator.cli.labs import LAB, POSITIONAL, either, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.plan import LinkPlan
    from emulator.core.units import Delay

app = typer.Typer(help="Look after the cables of a running lab.", no_args_is_help=True)

LINK = typer.Argument(
    ..., metavar="LINK", help="Name of a link (see `emu link list`), or a wildcard: 'worker-*--core'."
)


@app.command("list")
def show(
    name: str | None = POSITIONAL,
    lab: str | None = LAB,
    as_json: bool = typer.Option(False, "--json", help="Print the links as JSON, in base units."),
) -> None:
    """List the links of a lab with what each does now, both ways."""
    from emulator.lab.links import current

    found = pick(either(name, lab))
    _print(current(found), as_json)


@app.command("set")
def set_(
    link: str = LINK,
    settings: list[str] = typer.Argument(
        ..., metavar="KEY=VALUE...", help="As a topology file writes them: delay='40 ms' up='{loss: 2 %}'."
    ),
    lab: str | None = LAB,
) -> None:
    """Set a running link anew, all of it at once; what is not named stays, and so does what waits."""
    from emulator.lab.links import set_link

    _print(set_link(pick(lab), link, settings))


@app.command("cut")
def cut(link: str = LINK, lab: str | None = LAB) -> None:
    """Let a link pass nothing, both ways, until it is healed."""
    from emulator.lab import links

    _print(links.cut(pick(lab), link))


@app.command("heal")
def heal(link: str = LINK, lab: str | None = LAB) -> None:
    """Let a link that was cut do again exactly what it did."""
    from emulator.lab import links

    _print(links.heal(pick(lab), link))


def _print(links: Sequence[LinkPlan], as_json: bool = False) -> None:
    from emulator.topology.tree import way_text

    if as_json:
        import json
        from dataclasses import asdict

        print(json.dumps([asdict(link) for link in links], default=str, indent=1))
        return
    for link in links:
        there, back = way_text(link.a_to_b), way_text(link.b_to_a)
        print(link.name)
        if there == back:
            print(f"  {link.a.node} <-> {link.b.node}: {there}")
        else:
            print(f"  {link.a.node} -> {link.b.node}: {there}")
            print(f"  {link.b.node} -> {link.a.node}: {back}")


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
