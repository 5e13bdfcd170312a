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
from emulator.experiment.pace import Pacing, round_up
from emulator.experiment.path import path
from emulator.experiment.specs import SERVER, WORKER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.plan import Impairment, Plan
    from emulator.experiment.probe import StepCost
    from emulator.training.spec import Variant

#: share of the host's cores beyond which timing suffers, and beyond which it cannot hold
WARN, REFUSE = 0.8, 1.0

# Host CPU seconds, measured with AdaComp on wan-10, 26 updates a second: for each byte that a process moves
# (copies, checks, the kernel's TCP), for each byte that the relay moves over one cable, and for each parameter that
# a worker selects from and encodes.
ENDPOINT = 3e-9
CABLE = 8e-9
SELECT = 3e-9
BYTES_PER_PARAMETER, BYTES_PER_ENTRY = 4, 8


@dataclass(frozen=True)
class Admission:
    """Expected use in host cores: of workers, server and relay for the hungriest variant, beside the host's."""

    variant: str
    workers: float
    server: float
    relay: float
    cores: int

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
    if found.share <= WARN:
        return None
    enough = plan.time_scale * found.share / WARN
    remedy = f"`--time-scale {round_up(enough)}` would slow it down enough"
    if found.share > REFUSE and not force:
        raise HostError(
            f"this experiment is expected to use {found}", fix=f"{remedy}; `--force` runs it all the same, marked"
        )
    return f"warning: expected use is {found}; {remedy}"


def _estimate(plan: Plan, variant: Variant, cost: StepCost, cores: int, pacing: Pacing) -> Admission:
    server = next(node for node in plan.machines if node.role == SERVER)
    workers = [node for node in plan.machines if node.role == WORKER]
    down = cost.parameters * BYTES_PER_PARAMETER
    up = down if _dense(variant) else max(1, int(cost.parameters * variant.compression)) * BYTES_PER_ENTRY
    busy = serving = cables = 0.0
    for worker in workers:
        there, back = path(plan, server.name, worker.name), path(plan, worker.name, server.name)
        emulated = pacing.step(worker, variant.name)
        computing = emulated.host if emulated else cost.step_seconds + cost.parameters * SELECT
        step = computing + (down + up) * ENDPOINT
        # Real seconds: the network runs at the time scale, and the cap has it in already.
        network = plan.time_scale * (_seconds(there, down) + _seconds(back, up))
        # More threads make a single-threaded step shorter, not cheaper.
        took = max(step, plan.time_scale * (emulated.device or 0.0)) if emulated else step / worker.step_cpus
        rate = 1 / (network + took)
        busy += rate * step
        serving += rate * (down + up) * ENDPOINT
        cables += rate * (down + up) * len(there) * CABLE
    return Admission(variant.name, busy, min(serving, float(server.host_cpus) or cores), cables, cores)


def _dense(variant: Variant) -> bool:
    return variant.exchange == "asgd" and variant.compressor in ("none", "dense")


def _seconds(ways: Sequence[Impairment], size: int) -> float:
    """Emulated seconds of one message over a path: the slowest line, and all delays."""
    rates = [float(way.rate) for way in ways if way.rate is not None]
    line = size * 8 / min(rates) if rates else 0.0
    return line + sum(float(way.delay) for way in ways)
