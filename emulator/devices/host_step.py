"""How many training steps this host does in a second: measured where the model is at hand, else predicted.

Predicted by the host's own kernels: a convolution at the speed at which one of its kind was measured (which has its
tensors in it, and torch's way of doing it), all else at the speed of the memory, and each operator with torch's own
cost. On the hosts tried this came within 13 % of what was measured, so a measured step goes first.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from emulator.devices.kernels.register import STEP
from emulator.devices.speed import Speed
from emulator.devices.workload import references

if TYPE_CHECKING:
    from emulator.devices.host import HostSpeed
    from emulator.devices.workload import Step

KERNELS = ("conv_large", "conv_depthwise", "triad", "dispatch")
#: what the models of the reference steps come from, see `reference_models`
PACKAGE = "pytorchcv"


def steps(step: Step, host: HostSpeed) -> tuple[Speed, str]:
    """Steps a second, and "measured" or "predicted"; raises HostError if this host cannot be measured."""
    if host.measure is not None and step.model in references() and find_spec(PACKAGE) is not None:
        return host.speed(f"{STEP}{step.model}"), "measured"
    return predicted(step, {name: host.speed(name) for name in KERNELS}), "predicted"


def predicted(step: Step, speeds: dict[str, Speed]) -> Speed:
    """Steps a second by the speeds of `KERNELS`: on one core, on one of busy ones, and on all."""
    large, depthwise, memory, dispatch = (speeds[name] for name in KERNELS)

    def rate(products: float, channels: float, passes: float, operators: float) -> float:
        moved = sum(one.bytes for one in step.operators if one.kind == "pass")
        computed = step.flops("matrix") / products + step.flops("depthwise") / channels
        return 1 / (computed + moved / passes + step.launches / operators)

    return Speed(
        "step/s",
        rate(large.one, depthwise.one, memory.one, dispatch.one),
        rate(large.loaded, depthwise.loaded, memory.loaded, dispatch.loaded),
        # One program starts its operators one after another, however many threads it has.
        rate(large.all, depthwise.all, memory.all, dispatch.one),
        max(one.spread for one in speeds.values()),
        next((one.busy for one in speeds.values() if one.busy), ""),
    )
