"""Bring a lab up: nodes, cables, addresses, commands; and take all of it back when any step fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.lab import state as lab_state
from emulator.lab.remove import remove
from emulator.links.base import Cable, CableEnd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.core.plan import Endpoint, Plan
    from emulator.lab.lab import Lab
    from emulator.runtimes.base import NodeHandle

#: seconds a ping may take beyond the plan's own delays before the lab is called broken
_PING_GRACE = 2.0


def make(lab: Lab, *, wait: bool) -> None:
    """Make the lab, or raise and leave nothing of it."""
    _clear_leftover(lab)
    with lab_state.reserved(lab.id, lab.runtime.name, lab.links.name):
        try:
            _make(lab, wait=wait)
        except BaseException:
            remove(lab.id, held=True, parts=(lab.runtime, lab.links))
            raise


def _clear_leftover(lab: Lab) -> None:
    """Remove what a command that was killed half-way left under this name; a lab that is up stays."""
    state = lab_state.read(lab.id)
    if not lab.id.directory.is_dir() or (state is not None and state.phase == lab_state.UP):
        return
    with lab_state.locked(lab.id) as free:
        if free:
            remove(lab.id, held=True)


def _make(lab: Lab, *, wait: bool) -> None:
    lab_state.write_plan(lab.id, lab.plan)
    journal = lab_state.FileJournal(lab.id)
    try:
        handles = lab.runtime.create(lab.id, lab.plan, lab.plan.nodes, journal)
        lab.links.plug(lab.id, cables(lab.plan, handles), journal)
        if lab.runtime.name != "fake":
            from emulator.links.network import configure_all

            configure_all([(handles[node.name].netns, node) for node in lab.plan.nodes])
            if wait:
                _await_answers(lab.plan, handles)
        lab.runtime.start_commands(lab.id, lab.plan)
    except LinkError:
        lab.runtime.require_living(lab.id, lab.plan)  # a node that has ended meanwhile is the cause
        raise
    finally:
        journal.close()
    lab_state.set_phase(lab.id, lab_state.UP)


def cables(plan: Plan, handles: Mapping[str, NodeHandle]) -> list[Cable]:
    """The Plan's links with their impairments in real units, and the namespaces to plug them into."""
    macs = {(node.name, port.name): port.mac for node in plan.nodes for port in node.interfaces}

    def end(point: Endpoint) -> CableEnd:
        node = handles[point.node]
        return CableEnd(point.node, node.netns, point.interface, macs[point.node, point.interface], node.pid or 0)

    return [
        Cable(
            link.name,
            end(link.a),
            end(link.b),
            link.a_to_b.scaled(plan.time_scale),
            link.b_to_a.scaled(plan.time_scale),
            link.mtu,
            plan.seed,
        )
        for link in plan.links
    ]


def _await_answers(plan: Plan, handles: Mapping[str, NodeHandle]) -> None:
    """See every machine answer a ping from the first one (and the first from the second)."""
    from emulator.links.ping import ping_all

    machines = plan.machines
    if len(machines) < 2:
        return
    first = machines[0]
    pairs = [(handles[first.name].netns, str(node.address)) for node in machines[1:]]
    slowest = sum(
        float(link.a_to_b.delay + link.b_to_a.delay + link.a_to_b.jitter + link.b_to_a.jitter) for link in plan.links
    )
    worst = min(slowest, 10.0) * plan.time_scale
    answers = ping_all(pairs, timeout=worst + _PING_GRACE)
    silent = [node.name for node, answer in zip(machines[1:], answers, strict=True) if answer is None]
    if silent:
        shown = ", ".join(silent[:5]) + (" and others" if len(silent) > 5 else "")
        raise LinkError(
            f"{shown} did not answer a ping from {first.name}",
            fix="see `emu doctor`; `emu up --no-wait` keeps such a lab up to look into it",
        )
