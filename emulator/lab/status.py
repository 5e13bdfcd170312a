"""What `emu status` tells of a lab: its nodes, whether they live, and whether the links carry traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.clock import epoch
from emulator.core.errors import EmuError
from emulator.core.words import MORE_MEMORY, counted, mebibytes, out_of_memory
from emulator.lab import overload
from emulator.lab import state as lab_state

if TYPE_CHECKING:
    from rich.console import RenderableType

    from emulator.core.lab_id import LabId
    from emulator.lab.lab import Lab


def overview() -> list[dict[str, Any]]:
    """One entry for every lab that left anything here, half-made ones too."""
    from emulator.lab.remove import leftovers

    found = []
    for lab in leftovers():
        state = lab_state.read(lab)
        found.append(
            {
                "lab": lab.name,
                "phase": state.phase if state else _stateless(lab),
                "runtime": state.runtime if state else "unknown",
                "link_driver": state.link_driver if state else "unknown",
            }
        )
    return found


def _stateless(lab: LabId) -> str:
    """What a lab is of which no state is found here: its own lies elsewhere, or a crash has left the rest."""
    from emulator.runtimes.embedded.remove import has_processes

    if has_processes(lab):
        return "runs, but its state is not here (another EMU_STATE_DIR), or a crash has taken it"
    return "leftover of a crash"


def report(lab: Lab) -> dict[str, Any]:
    """The state of one lab, as plain values; memory in bytes, CPU in cores of this host.

    `storage` says why the nodes' cards are not held to their speed, if they are not. `overloads` are sentences about
    what of this host's doing holds the lab back now (see `overload.now`).
    """
    stats = lab.stats()
    state = lab.state
    nodes = []
    for node in lab.plan.machines:
        usage = stats.usage[node.name]
        reasons = [] if usage.running else [why(lab, node.name)]
        if usage.oom_kills:
            told = out_of_memory(node.name, usage.oom_kills, usage.memory_peak, node.memory)
            reasons.append(f"{told}; {MORE_MEMORY}")
        nodes.append(
            {
                "node": node.name,
                "device": node.device,
                "role": node.role,
                "address": str(node.address),
                "state": _state(usage.running, usage.oom_kills),
                "why": "; ".join(filter(None, reasons)),
                "cpus": float(node.cpus),
                "host_cpus": float(node.host_cpus),
                "memory": int(usage.memory),
                "memory_peak": int(usage.memory_peak),
                "memory_cap": int(node.memory),
                "pids": usage.pids,
                "out_of_memory": usage.oom_kills,
            }
        )
    health = stats.health
    return {
        "lab": lab.name,
        "phase": state.phase if state else "gone",
        "seconds_up": round(epoch() - state.created, 1) if state else 0.0,
        "runtime": lab.runtime.name,
        "link_driver": lab.links.name,
        "time_scale": lab.plan.time_scale,
        "links": len(lab.plan.links),
        "links_alive": health.alive,
        "links_priority": health.priority,
        "links_restarts": health.restarts,
        "links_detail": health.detail,
        "storage": _storage(lab),
        "overloads": [f"{one.node}: {one.what}" if one.node else one.what for one in overload.now(lab)],
        "nodes": nodes,
    }


def _storage(lab: Lab) -> list[str]:
    """Why the cards of its nodes are not held to their speed, each reason once; none where they are."""
    from emulator.runtimes import state as node_state

    return sorted({node.storage for node in node_state.read(lab.id).values() if node.storage})


def _state(running: bool, oom_kills: int) -> str:
    if not running:
        return "dead"
    return "up, out of memory" if oom_kills else "up"


def why(lab: Lab, node: str) -> str:
    """What a dead node's runtime says of its end."""
    try:
        lab.enter(node)
    except EmuError as error:
        return error.what
    return ""  # back again


def table(report: dict[str, Any]) -> RenderableType:
    """The report for a person."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("node", "device", "role", "address", "state"):
        grid.add_column(title, no_wrap=True)
    for title in ("cores", "host cores", "memory", "cap"):
        grid.add_column(title, justify="right", no_wrap=True)
    for node in report["nodes"]:
        colour = "green" if node["state"] == "up" else "red"
        grid.add_row(
            node["node"],
            node["device"],
            node["role"],
            node["address"],
            f"[{colour}]{node['state']}[/]",
            f"{node['cpus']:g}",
            f"{node['host_cpus']:.3f}",
            mebibytes(node["memory"]),
            mebibytes(node["memory_cap"]),
        )
    links = "carry traffic" if report["links_alive"] else "DEAD: emu link restart"
    extra = ", ".join(
        part
        for part in (report["links_priority"], counted(report["links_restarts"], "restart"), report["links_detail"])
        if part
    )
    head = (
        f"{report['lab']}: {report['phase']} for {report['seconds_up']:.0f} s (real), runtime {report['runtime']}, "
        f"time scale {report['time_scale']:g}"
    )
    tail = f"{counted(report['links'], 'link')} by {report['link_driver']}: {links} ({extra})"
    told = [Text(_said(node)) for node in report["nodes"] if node["why"]]
    held = [Text(f"the host does not keep up: {what}", style="yellow") for what in report["overloads"]]
    cards = [Text(f"storage is not capped: {why}") for why in report["storage"]]
    return Group(Text(head), grid, *told, Text(tail), *cards, *held)


def _said(node: dict[str, Any]) -> str:
    """What is to be said of a node, under its name."""
    told: str = node["why"]
    return told if told.startswith(f"{node['node']} ") else f"{node['node']}: {told}"
