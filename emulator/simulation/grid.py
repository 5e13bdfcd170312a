"""Find each exchange's learning rate: `python -m emulator.simulation.grid topologies/wan-10.yaml`.

Runs every (exchange, rate) on the virtual clock and prints the grid as Markdown; docs/learning-rates.md is its output.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.clock import timestamp
from emulator.simulation.engine import run_roles
from emulator.training import data
from emulator.training.spec import LAST, RoleSpec, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from emulator.core.plan import Plan


def specs(plan: Plan, variant: Variant, budget: float, every: float, seed: int, root: Path) -> list[RoleSpec]:
    """Roles for the nodes of a plan that have one, the server first."""
    server = next(node.name for node in plan.machines if node.role == "parameter_server")
    workers = tuple(node.name for node in plan.machines if node.role == "worker")
    common = RoleSpec(
        node=server,
        role="parameter_server",
        workload=Workload(),
        variant=variant,
        server=server,
        workers=workers,
        budget=budget,
        evaluate_every=every,
        seed=seed,
        data_directory=str(root),
    )
    return [common, *(replace(common, node=name, role="worker", index=n) for n, name in enumerate(workers))]


def cell(plan: Plan, variant: Variant, arguments: argparse.Namespace, root: Path) -> tuple[float, int]:
    """Final accuracy and updates of one run."""
    accuracies: list[float] = []
    updates = 0

    def see(record: dict[str, Any]) -> None:
        nonlocal updates
        if record["kind"] == "evaluation":
            accuracies.append(record["accuracy"])
            updates = record["updates"]

    roles = specs(plan, variant, arguments.budget, arguments.evaluate_every, arguments.seed, root)
    start = arguments.budget - (LAST - 0.5) * arguments.evaluate_every
    with tempfile.TemporaryDirectory() as out:
        run_roles(plan, roles, Path(out), see, evaluate_from=start)
    last = accuracies[-LAST:]
    return sum(last) / len(last), updates


def main(argv: Sequence[str] | None = None) -> None:
    """Print the grid; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topology", type=Path)
    parser.add_argument("--exchanges", nargs="+", default=["asgd", "comp-asgd", "adacomp"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.01, 0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--compression", type=float, default=0.01)
    parser.add_argument("--budget", type=float, default=450.0)
    parser.add_argument("--evaluate-every", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)

    from emulator.topology import load_plan

    plan = load_plan(arguments.topology, seed=arguments.seed)
    root = data.fetch("mnist", say=_tell)
    write = sys.stdout.write
    write(f"| exchange | {' | '.join(f'{rate:g}' for rate in arguments.rates)} | updates |\n")
    write("|---" * (len(arguments.rates) + 2) + "|\n")
    for exchange in arguments.exchanges:
        found = []
        for rate in arguments.rates:
            variant = Variant(exchange, exchange, learning_rate=rate, compression=arguments.compression)
            found.append(cell(plan, variant, arguments, root))
            _tell(f"{exchange} {rate:g}: {found[-1][0]:.2%} after {found[-1][1]} updates")
        row = " | ".join(f"{accuracy:.2%}" for accuracy, _ in found)
        # A run that diverged has few: the server drops what is not finite.
        write(f"| {exchange} | {row} | {max(updates for _, updates in found)} |\n")
        sys.stdout.flush()
    write(
        f"\nEngine: virtual clock; seed {arguments.seed}; {plan.name}, {arguments.budget:g} emulated seconds; "
        f"{os.cpu_count()} x {platform.machine()} {platform.system()} {platform.release()}; {timestamp('%Y-%m-%d')}.\n"
    )


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
