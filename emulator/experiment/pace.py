"""Nodes whose processor QEMU emulates: how long their steps are to take, and the time scale at which QEMU keeps up.

QEMU's speed says nothing about the device's. So a step takes what the calibrated model says: the CPU seconds of the
same step in this host's own programs, over the host cores that the device is worth. QEMU must be done sooner, which a
large enough time scale gives it the time for; then the node waits for the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.core.errors import ExperimentError, HostError
from emulator.core.words import some
from emulator.experiment.specs import WORKER
from emulator.topology.auto import round_up

if TYPE_CHECKING:
    from emulator.core.plan import NodePlan, Plan
    from emulator.experiment.probe import StepCost
    from emulator.training.spec import Variant, Workload

#: Share of the host's cores that is counted on while all emulated workers compute at once. Steps of two workers on
#: two cores took 1.3 times the measured cost at the median and up to 2 times, for the server, the relay and each role's
#: messages run beside them; at most one step in a hundred may be late.
ROOM = 0.5


@dataclass(frozen=True)
class EmulatedStep:
    """One step of an emulated worker: emulated seconds of the `device` (None = its speed is not known, and it is not
    paced), and CPU seconds that QEMU (`host`) needs of this host."""

    device: float | None
    host: float


@dataclass(frozen=True)
class Pacing:
    """The paces of one Plan on this host; without emulated nodes it is empty and changes nothing.

    `native` is the step's cost in this host's own programs, `emulated` that under QEMU by worker.
    """

    plan: Plan
    native: StepCost
    emulated: Mapping[str, StepCost] = field(default_factory=dict)

    def of(self, variant: str) -> dict[str, float]:
        """Emulated seconds for each flop charged, by node that is paced."""
        return {
            node.name: self._device(node, variant) / self.native.steps[variant].flops
            for node in foreign_roles(self.plan)
            if node.cpu_model
        }

    def step(self, worker: NodePlan, variant: str) -> EmulatedStep | None:
        """An emulated worker's step; None for any other node."""
        cost = self.emulated.get(worker.name)
        if cost is None:
            return None
        return EmulatedStep(self._device(worker, variant) if worker.cpu_model else None, cost.steps[variant].seconds)

    def least_time_scale(self, cores: int | None = None) -> float:
        """The least time scale at which QEMU keeps up, all emulated workers computing at once; 0 = any."""
        have = cores or len(os.sched_getaffinity(0))
        crowd = max(1.0, len(self.emulated) / have) / ROOM
        return max((step.host * crowd / step.device for step in self._steps() if step.device), default=0.0)

    def check(self, force: bool = False, cores: int | None = None) -> str | None:
        """A sentence about the paces, None without any.

        Raises HostError where QEMU cannot keep them, unless forced, and ExperimentError for a model without flops.
        """
        if any(step.flops <= 0 for step in self.native.steps.values()):
            raise ExperimentError(
                "a step of the model is charged no flops, so that an emulated node cannot be paced",
                where="workload",
                fix="let the model's `flops` tell them",
            )
        steps = [step for step in self._steps() if step.device]
        if not steps:
            return None
        least, scale = self.least_time_scale(cores), self.plan.time_scale
        hungriest = max(steps, key=lambda step: step.host / (step.device or 1.0))
        names = some([name for name in self.emulated if self.plan.node(name).cpu_model])
        models = ", ".join(sorted({self.plan.node(name).cpu_model for name in self.emulated} - {""}))
        need = (
            f"{names}: a step takes the device {hungriest.device:.3g} s, "
            f"and QEMU ({models}) {hungriest.host:.3g} s of a core of this host"
        )
        if scale >= least:
            return (
                f"{need}; paced to the device, for which time scale {scale:g} is enough ({round_up(least):g} would do)"
            )
        remedy = f"`--time-scale {round_up(least):g}` would do"
        if not force:
            raise HostError(
                f"{need}, which cannot keep pace at time scale {scale:g}",
                fix=f"{remedy}; `--force` runs it all the same, marked",
            )
        return f"warning: {need}, which cannot keep pace at time scale {scale:g}; {remedy}"

    def _device(self, node: NodePlan, variant: str) -> float:
        return self.native.steps[variant].seconds / node.step_cpus / self.plan.time_scale

    def _steps(self) -> list[EmulatedStep]:
        found = [
            self.step(self.plan.node(name), variant) for name, cost in self.emulated.items() for variant in cost.steps
        ]
        return [step for step in found if step is not None]


def foreign_roles(plan: Plan) -> list[NodePlan]:
    """The nodes with a role whose processor is emulated."""
    return [node for node in plan.machines if node.role and node.foreign]


def emulated_costs(
    plan: Plan, runtime: str | None, workload: Workload, data_directory: str, variants: Sequence[Variant]
) -> dict[str, StepCost]:
    """What a step costs each emulated worker, measured once for all that are alike, as `probe.measure_in` does."""
    from emulator.experiment.probe import measure_in

    known: dict[object, StepCost] = {}
    found = {}
    for node in foreign_roles(plan):
        if node.role != WORKER:
            continue
        kind = (node.image, node.arch, node.cpu_model, node.env)
        if kind not in known:
            known[kind] = measure_in(plan, node, runtime, workload, data_directory, variants)
        found[node.name] = known[kind]
    return found
