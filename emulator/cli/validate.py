"""`emu validate FILE`: is this topology file right?"""

from __future__ import annotations

from pathlib import Path

import typer

from emulator.cli.labs import path


def validate(
    file: Path = typer.Argument(..., help="Topology file.", readable=False, parser=path),
    as_json: bool = typer.Option(False, "--json", help="Print the counts as JSON."),
) -> None:
    """Check a topology file down to its addresses and routes; starts and measures nothing."""
    import json

    from emulator.core.words import counted
    from emulator.devices.host import nominal
    from emulator.topology import load_plan

    plan = load_plan(file, host=nominal())
    kinds = [node.kind for node in plan.nodes]
    counts = {kind: kinds.count(kind) for kind in ("host", "switch", "router") if kind in kinds}
    if as_json:
        print(json.dumps({"name": plan.name, "ok": True, "nodes": counts, "links": len(plan.links)}))
        return
    plural = {"host": "hosts", "switch": "switches", "router": "routers"}
    words = [f"{count} {kind if count == 1 else plural[kind]}" for kind, count in counts.items()]
    links = counted(len(plan.links), "link")
    print(f"ok: {plan.name} ({', '.join(words)}, {links})")
