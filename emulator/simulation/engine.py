"""The engine on a virtual clock: the same Plan and the same roles as in a lab, no containers, exact for a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from emulator.core.plan import Plan
    from emulator.training.spec import RoleSpec


def run_roles(
    plan: Plan,
    specs: Sequence[RoleSpec],
    out: Path,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    *,
    evaluate_from: float = 0.0,
) -> None:
    """Run all roles to their ends and write `<out>/<node>.jsonl` and `<out>/evaluator.jsonl`.

    Gradients and evaluations are really computed, on one thread so that results do not depend on this host's cores
    (torch's thread count stays at 1 afterwards); the time they take, and the time of messages, is modelled: see
    SimulatedContext and Network. The same Plan and specs give the same bytes. The data set must have been fetched.
    Snapshots from before `evaluate_from` are not evaluated (evaluating costs real time, never emulated).

    Raises TrainingError when a role fails or all wait for ever, ResultError when records cannot be written, and
    the role's own EmuError otherwise.
    """
    from emulator.simulation.records import Records
    from emulator.simulation.world import EVALUATOR, World

    records = Records(out, [*(spec.node for spec in specs), EVALUATOR], on_record)
    try:
        World(plan, [replace(spec, threads=1) for spec in specs], records, evaluate_from).run()
    finally:
        records.close()
