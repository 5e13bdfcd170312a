"""A Plan drawn: nodes by kind, and on each link what it does each way."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from emulator.core.errors import HostError, UsageError
from emulator.topology.table import delay_text, rate_text

if TYPE_CHECKING:
    from pathlib import Path

    import networkx as nx
    from matplotlib.axes import Axes

    from emulator.core.plan import LinkPlan, Plan

_LOOKS = {
    "host": ("#4c78a8", "o", 1500),
    "parameter_server": ("#e45756", "s", 1700),
    "switch": ("#9d9da1", "s", 1100),
    "router": ("#f2a93b", "D", 1100),
}


def draw(plan: Plan, path: Path) -> None:
    """Draw the Plan into `path`, in the format of its ending.

    Raises UsageError for a path that names no drawing, HostError if it cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    _check(path)
    graph = _graph(plan)
    place = _layout(graph)
    side = max(8.0, min(40.0, 3.2 * len(plan.nodes) ** 0.5))
    figure, axes = plt.subplots(figsize=(side * 1.25, side))
    try:
        _draw_links(plan, place, axes)
        _draw_nodes(plan, place, axes)
        scale = "" if plan.time_scale == 1 else f" (emulated; time scale {plan.time_scale:g})"
        axes.set_title(f"{plan.name}{scale}", fontsize=15, pad=14)
        axes.margins(0.12)
        axes.set_axis_off()
        figure.savefig(path, dpi=110, bbox_inches="tight")
    except OSError as error:
        raise HostError(
            f"the drawing cannot be written ({error.strerror or error})",
            where=os.fspath(path),
            fix="name a file in a directory that exists, can be written and has space",
        ) from None
    finally:
        plt.close(figure)


def _check(path: Path) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    fix = "name a .png, .svg or .pdf file"
    if path.is_dir():
        raise UsageError("this is a directory, not a drawing", where=os.fspath(path), fix=fix)
    known = FigureCanvasBase.filetypes.keys() - {"pgf"}  # wants LaTeX
    if path.suffix.lower().removeprefix(".") not in known:
        what = f"no drawing can be written as {path.suffix!r}" if path.suffix else "a drawing's file needs an ending"
        raise UsageError(what, where=os.fspath(path), fix=fix)


def _graph(plan: Plan) -> nx.Graph[str]:
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(node.name for node in plan.nodes)
    graph.add_edges_from((link.a.node, link.b.node) for link in plan.links)
    return graph


def _layout(graph: nx.Graph[str]) -> dict[str, Any]:
    """A tree on rings around its middle; anything else by springs, or as a circle where it is large."""
    import networkx as nx

    if nx.is_tree(graph):
        return _rings(graph)
    if len(graph) >= 500:  # beyond this networkx wants scipy
        return dict(nx.circular_layout(graph))
    return dict(nx.spring_layout(graph, pos=nx.circular_layout(graph), iterations=300, seed=0))


def _rings(graph: nx.Graph[str]) -> dict[str, Any]:
    """Each node on the ring of its distance from the root, over an arc in proportion to the leaves behind it."""
    import networkx as nx

    root = max(nx.center(graph), key=lambda name: graph.degree[name])
    order = [root, *(child for _, child in nx.bfs_edges(graph, root))]
    parents = dict(nx.bfs_predecessors(graph, root))
    leaves = dict.fromkeys(order, 0)
    for name in reversed(order):
        leaves[name] = leaves[name] or 1
        if name != root:
            leaves[parents[name]] += leaves[name]
    arc = {root: (0.0, 2 * math.pi)}
    place = {root: (0.0, 0.0)}
    depth = {root: 0}
    used = dict.fromkeys(order, 0)
    for name in order[1:]:
        parent = parents[name]
        begin, width = arc[parent]
        share = width / leaves[parent]
        arc[name] = (begin + used[parent] * share, share * leaves[name])
        used[parent] += leaves[name]
        depth[name] = depth[parent] + 1
        angle = math.pi / 2 - (arc[name][0] + arc[name][1] / 2)
        place[name] = (1.25 * depth[name] * math.cos(angle), depth[name] * math.sin(angle))
    return place


def _draw_nodes(plan: Plan, place: dict[str, Any], axes: Axes) -> None:
    for node in plan.nodes:
        look = node.role if node.role in _LOOKS else node.kind
        colour, marker, size = _LOOKS[look]
        x, y = place[node.name]
        axes.scatter([x], [y], s=size, c=colour, marker=marker, zorder=3, edgecolors="white", linewidths=2)
        kind = node.device if node.kind == "host" else node.kind
        text = f"{node.name}\n{kind}"
        # A host's name stands outwards of it, where no link passes; a switch's or router's below.
        distance = math.hypot(x, y)
        outer = node.kind == "host" and distance > 1e-6
        out = (x / distance, y / distance) if outer else (0.0, -1.0)
        axes.annotate(
            text,
            (x, y),
            xytext=(out[0] * 50, out[1] * 38 - (0 if outer else 6)),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9.5,
            zorder=5,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
        )


def _draw_links(plan: Plan, place: dict[str, Any], axes: Axes) -> None:
    for link in plan.links:
        (xa, ya), (xb, yb) = place[link.a.node], place[link.b.node]
        axes.plot([xa, xb], [ya, yb], color="#b8bcc4", linewidth=1.6, zorder=1)
        axes.annotate(
            _label(link, xb - xa, yb - ya),
            ((xa + xb) / 2, (ya + yb) / 2),
            ha="center",
            va="center",
            fontsize=8,
            zorder=4,
            bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "#d5d8de", "linewidth": 0.7},
        )


def _label(link: LinkPlan, dx: float, dy: float) -> str:
    """What the link does; where the directions differ, an arrow points the way that each takes in the drawing."""
    there, back = ("→", "←") if abs(dx) >= abs(dy) else ("↑", "↓")
    ways = (link.a_to_b, link.b_to_a)
    if (dx if there == "→" else dy) < 0:
        ways = (link.b_to_a, link.a_to_b)
    rates, delays, losses = ([getattr(way, name) for way in ways] for name in ("rate", "delay", "loss"))
    lines = []
    if rates[0] == rates[1]:
        lines.append(rate_text(rates[0]))
    else:
        lines += [f"{there} {rate_text(rates[0])}", f"{back} {rate_text(rates[1])}"]
    if delays[0] == delays[1]:
        lines.append(delay_text(delays[0]))
    else:
        lines.append(f"{there} {delay_text(delays[0])} {back} {delay_text(delays[1])}")
    spread = max(way.jitter for way in ways)
    if spread:
        lines[-1] += f" ± {delay_text(spread)}"
    if max(losses):
        lines.append(" / ".join(f"{loss * 100:g} %" for loss in sorted(set(losses))) + " lost")
    return "\n".join(lines)
