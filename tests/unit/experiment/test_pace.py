"""Paces of emulated nodes, on figures that can be worked out on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.core.errors import ExperimentError, HostError
from emulator.core.plan import NodePlan, Plan
from emulator.core.units import Share
from emulator.devices.costs import ENDPOINT
from emulator.experiment.admission import estimate
from emulator.experiment.pace import EmulatedStep, Pacing
from emulator.experiment.probe import Step, StepCost
from emulator.training.spec import Variant
from tests.unit.experiment import test_admission

#: 10 ms here and a second under QEMU; selecting costs adacomp a fifth more
NATIVE = StepCost(1000, 0.01, {"asgd": Step(0.01, 1e6), "adacomp": Step(0.012, 1.5e6)})
QEMU = StepCost(1000, 1.0, {"asgd": Step(1.0, 1e6), "adacomp": Step(1.1, 1.5e6)})


def node(name: str, time_scale: float, **changes: object) -> NodePlan:
    """A board worth a tenth of a host core, emulated."""
    fields: dict[str, object] = {
        "role": "worker", "arch": "arm64", "cpu_model": "cortex-a72", "host_cpus": Share(1),
        "native_cpus": Share(0.1 / time_scale),
    }  # fmt: skip
    return NodePlan(name, **(fields | changes))  # type: ignore[arg-type]


def pacing(time_scale: float = 30.0, workers: int = 1, **changes: object) -> Pacing:
    nodes = tuple(node(f"w{number}", time_scale, **changes) for number in range(workers))
    server = NodePlan("server", role="parameter_server", host_cpus=Share(2), threads=2)
    return Pacing(Plan("p", (server, *nodes), (), time_scale), NATIVE, {one.name: QEMU for one in nodes})


@pytest.mark.parametrize("time_scale", [1.0, 30.0])
def test_a_step_takes_its_native_time_over_what_the_device_is_worth(time_scale: float) -> None:
    found = pacing(time_scale)
    assert found.of("asgd") == {"w0": pytest.approx(0.1 / 1e6)}, "10 ms over a tenth of a core, whatever the time scale"
    assert found.of("adacomp")["w0"] * 1.5e6 == pytest.approx(0.12)
    worker = found.plan.node("w0")
    assert found.step(worker, "asgd") == EmulatedStep(device=pytest.approx(0.1), host=1.0)
    assert found.step(found.plan.node("server"), "asgd") is None


def test_the_least_time_scale_lets_qemu_keep_up_with_room_and_company() -> None:
    # asgd asks for more: a second in a tenth of one, on half of the cores.
    assert pacing().least_time_scale(cores=2) == pytest.approx(20)
    assert pacing(workers=2).least_time_scale(cores=2) == pytest.approx(20), "a core for each"
    assert pacing(workers=6).least_time_scale(cores=2) == pytest.approx(60), "three share a core"


def test_enough_is_said_in_one_line() -> None:
    assert pacing(workers=2).check(cores=2) == (
        "w0, w1: a step takes the device 0.1 s, and QEMU (cortex-a72) 1 s of a core of this host; paced to the device, "
        "for which time scale 30 is enough (20 would do)"
    )


def test_too_small_a_time_scale_is_refused_with_one_that_would_do() -> None:
    with pytest.raises(
        HostError, match=r"cannot keep pace at time scale 1; `--time-scale 20` would do; `--force` runs"
    ):
        pacing(1.0).check(cores=2)
    assert str(pacing(1.0).check(force=True, cores=2)).startswith("warning: w0: a step takes the device 0.1 s")
    pacing(20.1).check(cores=2)


def test_a_model_that_charges_nothing_cannot_be_paced() -> None:
    free = StepCost(1000, 0.01, {"asgd": Step(0.01, 0.0)})
    with pytest.raises(ExperimentError, match="is charged no flops, so that an emulated node cannot be paced; let the"):
        replace(pacing(), native=free).check(cores=2)


def test_a_board_whose_speed_is_not_known_is_not_paced() -> None:
    found = pacing(cpu_model="")
    assert found.of("asgd") == {}
    assert found.check(cores=2) is None
    assert found.step(found.plan.node("w0"), "asgd") == EmulatedStep(device=None, host=1.0)


def test_without_emulated_nodes_nothing_is_paced() -> None:
    plan = test_admission.plan()
    found = Pacing(plan, StepCost(1000, 0.01))
    assert (found.of("asgd"), found.least_time_scale(), found.check()) == ({}, 0, None)


@pytest.mark.parametrize(("native", "took"), [(0.001, 1.0 + 2e6 * ENDPOINT), (0.1, 10.0)])
def test_admission_counts_what_qemu_needs_over_the_pace_that_it_keeps(native: float, took: float) -> None:
    before = test_admission.plan(workers=1, cap=0.01)
    nodes = [node(one.name, 1.0, native_cpus=Share(0.01)) if one.role == "worker" else one for one in before.nodes]
    plan = Plan("p", tuple(nodes), before.links)
    cost = StepCost(250_000, native, {"asgd": Step(native, 1e6)})
    known = Pacing(plan, cost, {"w0": StepCost(250_000, 1.0, {"asgd": Step(1.0, 1e6)})})
    found = estimate(plan, [Variant("asgd")], cost, cores=2, pacing=known)
    # A dense megabyte each way takes two seconds; 1 ms natively are 0.1 s of the device, which QEMU overruns.
    assert found.workers == pytest.approx((1.0 + 2e6 * ENDPOINT) / (2.0 + took))
