"""A Plan as tables for people: what `emu up --dry-run` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from emulator.core.plan import Impairment, LinkPlan, NodePlan, Plan
    from emulator.core.units import Delay, Rate


def plan_table(plan: Plan) -> RenderableType:
    """Nodes, links in both directions, and notes; all rates and times are emulated."""
    from rich.console import Group
    from rich.text import Text

    title = f"{plan.name}: time scale {plan.time_scale:g}, seed {plan.seed}, from {plan.source or 'code'}"
    notes = [Text(f"note: {note}", style="yellow") for note in plan.notes]
    return Group(Text(title, style="bold"), nodes_table(plan), links_table(plan), *notes)


def nodes_table(plan: Plan) -> Table:
    """One row a node; `host cores` is what it gets of this host."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("node", "kind", "role", "group"):
        table.add_column(heading)
    for heading in ("cores", "host cores", "threads", "memory"):
        table.add_column(heading, justify="right")
    table.add_column("address")
    for node in plan.nodes:
        table.add_row(node.name, node.device or node.kind, node.role, node.group, *_caps(node), str(node.address or ""))
    return table


def links_table(plan: Plan) -> Table:
    """One row a direction."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("from", "to"):
        table.add_column(heading)
    for heading in ("rate", "delay", "jitter", "loss", "queue"):
        table.add_column(heading, justify="right")
    table.add_column("preset")
    for link in plan.links:
        for row in _directions(link):
            table.add_row(*row)
    return table


def rate_text(rate: Rate | None) -> str:
    """A rate as short as people write it."""
    return "unlimited" if rate is None else str(rate).replace("/s", "")


def delay_text(delay: Delay) -> str:
    """A delay in ms."""
    return f"{delay * 1e3:.4g} ms"


def size_text(size: float) -> str:
    """A size in the binary unit that leaves it readable."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:g} B"


def _caps(node: NodePlan) -> tuple[str, str, str, str]:
    if node.kind != "host":
        return "", "", "", ""
    return f"{float(node.cpus):g}", f"{float(node.host_cpus):.3g}", str(node.threads), size_text(node.memory)


def _directions(link: LinkPlan) -> list[list[str]]:
    ways = ((link.a.node, link.b.node, link.a_to_b), (link.b.node, link.a.node, link.b_to_a))
    return [[start, end, *_impairment(way), link.preset or ""] for start, end, way in ways]


def _impairment(way: Impairment) -> list[str]:
    jitter = delay_text(way.jitter) if way.jitter else ""
    loss = f"{way.loss * 100:.4g} %{' in bursts' if way.loss_model else ''}" if way.loss else ""
    return [rate_text(way.rate), delay_text(way.delay), jitter, loss, size_text(way.queue)]
