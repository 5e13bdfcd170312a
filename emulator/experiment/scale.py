"""`time_scale: auto` of an experiment: the fastest factor at which its expected use leaves the host head-room."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core.words import counted
from emulator.devices import costs
from emulator.experiment.admission import estimate
from emulator.experiment.pace import Pacing
from emulator.topology import auto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.core.plan import Plan
    from emulator.experiment.admission import Admission
    from emulator.experiment.probe import StepCost
    from emulator.training.spec import Variant

#: a compute step may take this many times as long as alone, on average, since several workers compute at once
STRETCH = 1.02


def choose(
    at: Callable[[float], Plan],
    variants: Sequence[Variant],
    cost: StepCost,
    emulated: Mapping[str, StepCost],
    cores: int | None = None,
) -> Plan:
    """The Plan `at` the fastest time scale for these variants, with a note that says what limited it."""
    have = cores or len(os.sched_getaffinity(0))

    def use(scale: float) -> Admission:
        plan = at(scale)
        return estimate(plan, variants, cost, have, Pacing(plan, cost, emulated))

    share = auto.least(lambda scale: use(scale).share, costs.USE)
    crowd = auto.least(lambda scale: use(scale).stretch, STRETCH)
    relay = auto.least(lambda scale: use(scale).relay, costs.USE)
    usual = at(1.0)
    return auto.decided(
        at,
        [
            auto.Need(share, f"expected use, {use(share)}"),
            auto.Need(
                crowd,
                f"workers that compute at once on {counted(have, 'core')} lengthen a compute step by "
                f"{(use(crowd).stretch - 1) * 100:.1f} % on average",
            ),
            auto.Need(relay, "one relay, which runs on one core, carries all messages"),
            auto.Need(Pacing(usual, cost, emulated).least_time_scale(have), "QEMU, which must keep the device's pace"),
            *auto.fast_cores(at, have),
            auto.lateness(usual),
        ],
    )
