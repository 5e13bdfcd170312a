"""A Plan as a tree of text: what hangs on what, from the middle outwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.topology.table import delay_text, rate_text, size_text

if TYPE_CHECKING:
    from rich.tree import Tree

    from emulator.core.plan import Impairment, LinkPlan, NodePlan, Plan


def plan_tree(plan: Plan) -> Tree:
    """The Plan's graph as a tree from its best connected node; a link that closes a ring is shown as "also to"."""
    from rich.tree import Tree

    links: dict[str, list[LinkPlan]] = {node.name: [] for node in plan.nodes}
    for link in plan.links:
        links[link.a.node].append(link)
        links[link.b.node].append(link)
    root = max(plan.nodes, key=lambda node: (node.kind != "host", len(links[node.name])))
    tree = Tree(f"[bold]{plan.name}[/bold] (time scale {plan.time_scale:g})")
    used: set[str] = set()
    queue = [(root, tree.add(_node(root)))]
    seen = {root.name}
    for node, branch in queue:
        for link in links[node.name]:
            if link.name in used:
                continue
            used.add(link.name)
            towards, away = _ways(link, node.name)
            peer = plan.node(link.b.node if link.a.node == node.name else link.a.node)
            label = f"[dim]{_ways_text(towards, away)}[/dim]"
            if peer.name in seen:
                branch.add(f"also to {peer.name}  {label}")
                continue
            seen.add(peer.name)
            queue.append((peer, branch.add(f"{_node(peer)}  {label}")))
    return tree


def _node(node: NodePlan) -> str:
    if node.kind != "host":
        return f"[bold cyan]{node.name}[/bold cyan] ({node.kind})"
    words = [
        f"{float(node.cpus):g} core{'' if float(node.cpus) == 1 else 's'}",
        size_text(node.memory),
        str(node.address or "no address"),
    ]
    role = f", {node.role}" if node.role else ""
    return f"[bold]{node.name}[/bold] ({node.device}{role}: {', '.join(words)})"


def _ways(link: LinkPlan, near: str) -> tuple[Impairment, Impairment]:
    """The directions away from the root and towards it."""
    return (link.a_to_b, link.b_to_a) if link.a.node == near else (link.b_to_a, link.a_to_b)


def _ways_text(out: Impairment, back: Impairment) -> str:
    if way_text(out) == way_text(back):
        return f"⇅ {way_text(out)}"
    rest = way_text(out).partition(", ")[2]
    if rest == way_text(back).partition(", ")[2]:
        return f"↓ {rate_text(out.rate)} ↑ {rate_text(back.rate)}, {rest}"
    return f"↓ {way_text(out)} ↑ {way_text(back)}"


def way_text(way: Impairment) -> str:
    """One direction in a few words."""
    if way.cut:
        return "cut"
    words = [rate_text(way.rate), delay_text(way.delay)]
    if way.jitter:
        words[-1] += f" ± {delay_text(way.jitter)}{_shape(way)}"
    if way.loss:
        words.append(f"{way.loss * 100:.4g} % lost{' in bursts' if way.loss_model else ''}")
    if way.early:
        words.append(f"{way.early * 100:g} % early")
    for share, what in ((way.duplicate, "twice"), (way.corrupt, "damaged")):
        if share:
            words.append(f"{share * 100:g} % {what}")
    if way.codel is not None:
        words.append("CoDel")
    return ", ".join(words)


def _shape(way: Impairment) -> str:
    """How the jitter is distributed, if not evenly and in order."""
    said = []
    if way.spread is not None:
        said += [] if way.spread.name == "uniform" else [way.spread.name]
        said += [f"correlated {way.spread.correlation * 100:g} %"] if way.spread.correlation else []
    said += ["reordering"] if way.reorder else []
    return f" ({', '.join(said)})" if said else ""
