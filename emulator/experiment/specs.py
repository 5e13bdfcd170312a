"""A Plan and an experiment -> what each role is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.core.errors import ExperimentError
from emulator.experiment.explain import nearest
from emulator.training.spec import RoleSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.core.plan import NodePlan, Plan
    from emulator.experiment.read import Experiment
    from emulator.training.spec import Variant

SERVER, WORKER = "parameter_server", "worker"
#: names of record files that are not a node's
TAKEN = ("controller", "evaluator", "launcher")


def check_roles(plan: Plan, where: str) -> tuple[NodePlan, list[NodePlan]]:
    """The server and the workers of a Plan; raises ExperimentError unless there is one server and some worker."""
    for node in plan.machines:
        if node.role not in ("", SERVER, WORKER):
            fix = nearest(node.role, (SERVER, WORKER))
            raise ExperimentError(f"node {node.name!r} has the unknown role {node.role!r}", where=where, fix=fix)
        if node.role and node.name in TAKEN:
            fix = "give the node another name"
            raise ExperimentError(f"node name {node.name!r} is taken by emu's own records", where=where, fix=fix)
    servers = [node for node in plan.machines if node.role == SERVER]
    workers = [node for node in plan.machines if node.role == WORKER]
    if len(servers) != 1:
        count = "no node" if not servers else f"{len(servers)} nodes ({', '.join(node.name for node in servers)})"
        fix = f"give exactly one node `role: {SERVER}`"
        raise ExperimentError(f"an experiment needs one server, and {count} has that role", where=where, fix=fix)
    if not workers:
        raise ExperimentError("no node is a worker", where=where, fix=f"give at least one node `role: {WORKER}`")
    return servers[0], workers


def base_specs(plan: Plan, experiment: Experiment, data_directory: str) -> list[RoleSpec]:
    """One spec for each node with a role, the server first, for the first variant and repeat."""
    model = experiment.model
    server, workers = check_roles(plan, str(experiment.topology))
    nodes = [server, *workers]
    common = RoleSpec(
        node="",
        role="",
        workload=experiment.workload,
        variant=experiment.variants[0],
        server=server.name,
        workers=tuple(node.name for node in workers),
        budget=float(model.budget),
        max_updates=model.max_updates,
        evaluate_every=float(model.evaluate_every),
        evaluate_last=float(model.evaluate_last or 0),
        seed=model.seed,
        time_scale=plan.time_scale,
        data_directory=data_directory,
        addresses=tuple((node.name, str(node.address)) for node in nodes),
        save_parameters=model.save_parameters,
    )
    return [
        replace(
            common, node=node.name, role=node.role, index=max(0, index - 1), threads=node.threads, gflops=node.gflops
        )
        for index, node in enumerate(nodes)
    ]


def specs_for(
    specs: list[RoleSpec], variant: Variant, repeat: int, run_id: str, paces: Mapping[str, float]
) -> list[RoleSpec]:
    """The same roles for a variant and a repeat, whose seed is the experiment's plus the repeat's number.

    `paces` are those of nodes that are to be paced, by name.
    """
    return [
        replace(
            spec,
            variant=variant,
            seed=spec.seed + repeat,
            run_id=f"{run_id}/{variant.name}/{repeat}",
            pace=paces.get(spec.node, 0.0),
        )
        for spec in specs
    ]
