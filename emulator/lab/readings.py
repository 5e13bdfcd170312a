"""Readings of a lab over time: what nodes and links used between two moments, in emulated units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.clock import RealClock
from emulator.core.units import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from emulator.lab.lab import Lab, LabStats
    from emulator.links.base import DirectionStatistics


def readings(lab: Lab, interval: float, *, endless: bool) -> Iterator[dict[str, Any]]:
    """A reading over each `interval` of real seconds; one, or without end.

    `cpus` are cores of the device in use, `throttled` the share of the interval for which the cap held the node
    back, rates are emulated bits per second, drops are counted since the lab's start.
    """
    clock = RealClock()
    before, start = lab.stats(), clock.now()
    while True:
        clock.sleep(interval)
        after, end = lab.stats(), clock.now()
        yield _between(lab, before, after, end - start)
        if not endless:
            return
        before, start = after, end


def _between(lab: Lab, before: LabStats, after: LabStats, seconds: float) -> dict[str, Any]:
    scale = lab.plan.time_scale
    nodes = {}
    for node in lab.plan.machines:
        old, new = before.usage[node.name], after.usage[node.name]
        share = float(new.cpu - old.cpu) / seconds / node.quota
        nodes[node.name] = {
            "cpus": round(share * float(node.cpus), 4),
            "of_cap": round(share, 4),
            "throttled": round(float(new.throttled - old.throttled) / seconds, 4),
            "memory": int(new.memory),
            "memory_cap": int(node.memory),
            "out_of_memory": new.oom_kills,
            "running": new.running,
        }
    links = {
        name: {
            "a_to_b": _direction(before.cables[name].a_to_b, now.a_to_b, seconds, scale),
            "b_to_a": _direction(before.cables[name].b_to_a, now.b_to_a, seconds, scale),
        }
        for name, now in after.cables.items()
        if name in before.cables
    }
    return {"lab": lab.name, "real_seconds": round(seconds, 3), "time_scale": scale, "nodes": nodes, "links": links}


def _direction(old: DirectionStatistics, new: DirectionStatistics, seconds: float, scale: float) -> dict[str, Any]:
    return {
        "rate": round((new.bytes - old.bytes) * 8 / seconds * scale),
        "bytes": new.bytes,
        "packets": new.packets,
        "lost": new.lost,
        "overflowed": new.overflowed,
        "unasked": new.unasked,
    }


def view(reading: dict[str, Any]) -> RenderableType:
    """A reading for a person: a table of nodes and one of links."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    nodes = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("node", "cores", "of its cap", "throttled", "memory", "cap", "out of memory"):
        nodes.add_column(title, justify="left" if title == "node" else "right", no_wrap=True)
    for name, node in reading["nodes"].items():
        nodes.add_row(
            name if node["running"] else f"[red]{name} (dead)[/]",
            f"{node['cpus']:.2f}",
            f"{node['of_cap']:.0%}",
            f"{node['throttled']:.0%}",
            f"{node['memory'] / 2**20:.0f} MiB",
            f"{node['memory_cap'] / 2**20:.0f} MiB",
            str(node["out_of_memory"]),
        )
    links = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("link", "direction", "rate", "bytes", "lost", "overflowed", "unasked"):
        links.add_column(title, justify="left" if title in ("link", "direction") else "right", no_wrap=True)
    for name, link in reading["links"].items():
        for arrow, key in (("->", "a_to_b"), ("<-", "b_to_a")):
            way = link[key]
            links.add_row(
                name, arrow, f"{Rate(way['rate']) / 1e6:.3f} Mbit/s", f"{way['bytes'] / 1e6:.2f} MB",
                str(way["lost"]), str(way["overflowed"]), str(way["unasked"]),
            )  # fmt: skip
    head = f"{reading['lab']}, over {reading['real_seconds']:g} real s, time scale {reading['time_scale']:g}"
    return Group(Text(head), nodes, Text(""), links)
