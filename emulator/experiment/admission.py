"""Will this host carry the experiment? By expected use, not by the sum of quotas: most nodes wait for their links.

A worker's cycle is pull + compute + push. Its CPU use is what a step and its messages cost over that cycle; the
server's and the relay's follow from how many bytes the cycles move. Queueing at the server is left out, so the
estimate is on the safe side. A worker whose processor is emulated costs what QEMU needs, over the pace that it keeps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import HostError
from emulator.devices import costs
from emulator.experiment.crowd import Computing, stretch
from emulator.experiment.pace import Pacing
from emulator.experiment.path import path
from emulator.experiment.specs import SERVER, WORKER
from emulator.topology.auto import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.plan import Impairment, Plan
    from emulator.experiment.probe import StepCost
    from emulator.training.spec import Variant

#: host CPU seconds for each parameter that a worker selects from and encodes, measured as `costs.ENDPOINT` was
SELECT = 3e-9
BYTES_PER_PARAMETER, BYTES_PER_ENTRY = 4, 8


@dataclass(frozen=True)
class Admission:
    """Expected use in host cores: of workers, server and relay for the hungriest variant, beside the host's.

    `stretch`: how many times longer a compute step takes, on average, since several workers compute at once.
    """

    variant: str
    workers: float
    server: float
    relay: float
    cores: int
    stretch: float = 1.0

    @property
    def share(self) -> float:
        return (self.workers + self.server + self.relay) / self.cores

    def __str__(self) -> str:
        return (
            f"{self.share * 100:.0f} % of {self.cores} cores for {self.variant} "
            f"(workers {self.workers:.2f}, server {self.server:.2f}, relay {self.relay:.2f} cores)"
        )


def estimate(
    plan: Plan, variants: Sequence[Variant], cost: StepCost, cores: int | None = None, pacing: Pacing | None = None
) -> Admission:
    """The expected use of the variant that needs most; `pacing` tells of emulated workers."""
    have = cores or len(os.sched_getaffinity(0))
    known = pacing or Pacing(plan, cost)
    return max((_estimate(plan, variant, cost, have, known) for variant in variants), key=lambda found: found.share)


def admit(found: Admission, plan: Plan, force: bool = False) -> str | None:
    """A warning to show, or None; raises HostError when more is needed than there is, unless forced."""
    if found.share <= costs.USE:
        return None
    enough = plan.time_scale * found.share / costs.USE
    remedy = f"`--time-scale {round_up(enough):g}` would slow it down enough"
    if found.share > costs.LIMIT and not force:
        raise HostError(
            f"this experiment is expected to use {found}", fix=f"{remedy}; `--force` runs it all the same, marked"
        )
    return f"warning: expected use is {found}; {remedy}"


def cycles(variants: Sequence[Variant], cost: StepCost) -> dict[str, float]:
    """Host CPU seconds of a worker's cycle, by variant: gradient, selection, and a pull's and a push's messages."""
    return {variant.name: _gradient(cost) + sum(_sizes(variant, cost)) * costs.ENDPOINT for variant in variants}


def _gradient(cost: StepCost) -> float:
    return cost.step_seconds + cost.parameters * SELECT


def _sizes(variant: Variant, cost: StepCost) -> tuple[int, int]:
    """Bytes of a pull and of a push."""
    down = cost.parameters * BYTES_PER_PARAMETER
    return down, down if _dense(variant) else max(1, int(cost.parameters * variant.compression)) * BYTES_PER_ENTRY


def _estimate(plan: Plan, variant: Variant, cost: StepCost, cores: int, pacing: Pacing) -> Admission:
    server = next(node for node in plan.machines if node.role == SERVER)
    workers = [node for node in plan.machines if node.role == WORKER]
    down, up = _sizes(variant, cost)
    busy = serving = cables = 0.0
    computing: list[Computing] = []
    for worker in workers:
        there, back = path(plan, server.name, worker.name), path(plan, worker.name, server.name)
        emulated = pacing.step(worker, variant.name)
        gradient = emulated.host if emulated else _gradient(cost)
        step = gradient + (down + up) * costs.ENDPOINT
        # Real seconds: the network runs at the time scale, and the cap has it in already.
        network = plan.time_scale * (_seconds(there, down) + _seconds(back, up))
        # More threads make a single-threaded step shorter, not cheaper.
        took = max(step, plan.time_scale * (emulated.device or 0.0)) if emulated else step / worker.step_cpus
        rate = 1 / (network + took)
        # Under a cap a second of CPU time does less, so the step takes more of them.
        wanted = min(1.0, step / took) if emulated else worker.step_cpus / worker.worth
        busy += rate * took * wanted
        computing.append(Computing(wanted, rate * took))
        serving += rate * (down + up) * costs.ENDPOINT
        cables += rate * (down + up) * len(there) * costs.CABLE
    serving = min(serving, float(server.host_cpus) or cores)
    room = max(0.05 * cores, cores - serving - min(1.0, cables))
    return Admission(variant.name, busy, serving, cables, cores, stretch(computing, room))


def _dense(variant: Variant) -> bool:
    return variant.exchange == "asgd" and variant.compressor in ("none", "dense")


def _seconds(ways: Sequence[Impairment], size: int) -> float:
    """Emulated seconds of one message over a path: the slowest line, and all delays."""
    rates = [float(way.rate) for way in ways if way.rate is not None]
    line = size * 8 / min(rates) if rates else 0.0
    return line + sum(float(way.delay) for way in ways)
