"""The energy of a variant's nodes: summed from each node's use, told apart from those whose watts are not known."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from emulator.core.words import counted, some
from emulator.results import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.results.nodes import NodeUse

MODEL = "modelled: a straight line from the device's idle watts to those with all cores busy, by CPU use"


def energy_of(repeats: Sequence[Sequence[NodeUse]], updates: Sequence[int]) -> dict[str, Any]:
    """The variant's energy, means over its repeats.

    `joules` and `watts` are sums over the nodes whose watts are known (`nodes`), from the first pull to the stop;
    None where there are none. `not_known` names the other nodes with a role.
    """
    known = [[use for use in one if use.joules is not None] for one in repeats]
    sums = [sum(use.joules or 0.0 for use in one) for one in known]
    count = len(known[0]) if known else 0
    done = sum(updates)
    return {
        "joules": round(statistics.fmean(sums), 3) if count else None,
        "joules_per_update": round(sum(sums) / done, 6) if count and done else None,
        "watts": round(statistics.fmean(sum(use.watts or 0.0 for use in one) for one in known), 4) if count else None,
        "nodes": count,
        "not_known": [use.node for use in repeats[0] if use.joules is None] if repeats else [],
        "model": MODEL,
    }


def rows(variants: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The cells of the report's table: variant, energy, an update, power, nodes, and the nodes not known."""
    found: list[tuple[str, ...]] = []
    for name, item in variants.items():
        one = item["energy"]
        found.append(
            (
                name,
                numbers.joules(one["joules"]),
                numbers.joules(one["joules_per_update"]),
                numbers.DASH if one["watts"] is None else f"{one['watts']:.1f} W",
                str(one["nodes"]),
                some(one["not_known"]) or "none",
            )
        )
    return found


def line(variants: Mapping[str, Mapping[str, Any]]) -> str:
    """The energy of all variants in a sentence for the terminal; empty where no watts are known."""
    parts = [f"{name} {numbers.joules(item['energy']['joules'])}" for name, item in variants.items()]
    first = next((item["energy"] for item in variants.values() if item["energy"]["nodes"]), None)
    if first is None:
        return ""
    rest = f"; not known for {some(first['not_known'])}" if first["not_known"] else ""
    nodes = counted(first["nodes"], "node")
    return f"energy of {nodes} (modelled): {', '.join(parts)}{rest}"
