"""Admission by expected use, on Plans whose figures can be worked out on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.core.errors import HostError
from emulator.core.plan import Endpoint, Impairment, LinkPlan, NodePlan, Plan
from emulator.core.units import Delay, Rate, Share
from emulator.devices.costs import CABLE, ENDPOINT
from emulator.experiment.admission import SELECT, Admission, admit, estimate
from emulator.experiment.path import path
from emulator.experiment.probe import StepCost
from emulator.training.spec import Variant

#: 1 MB dense, 10 ms of CPU a step
COST = StepCost(parameters=250_000, step_seconds=0.01)
ASGD, SPARSE = Variant("asgd"), Variant("sparse", exchange="adacomp", compression=0.01)


def plan(time_scale: float = 1.0, workers: int = 1, cap: float = 0.5) -> Plan:
    """Workers at 8 Mbit/s and no delay behind a hub, so that a dense megabyte takes a second."""
    nodes = [NodePlan("server", role="parameter_server", host_cpus=Share(2), threads=2), NodePlan("hub", kind="router")]
    nodes += [NodePlan(f"w{n}", role="worker", host_cpus=Share(cap / time_scale)) for n in range(workers)]
    slow = Impairment(rate=Rate(8e6))
    links = [LinkPlan("s", Endpoint("server", "e"), Endpoint("hub", "e"), Impairment(), Impairment())]
    links += [LinkPlan(f"l{n}", Endpoint("hub", f"e{n}"), Endpoint(f"w{n}", "e"), slow, slow) for n in range(workers)]
    return Plan("p", tuple(nodes), tuple(links), time_scale=time_scale)


def test_a_worker_costs_its_step_over_its_cycle() -> None:
    found = estimate(plan(), [ASGD], COST, cores=2)
    step = 0.01 + 250_000 * SELECT + 2e6 * ENDPOINT
    rate = 1 / (2.0 + step / 0.5)
    assert found.workers == pytest.approx(rate * step)
    assert found.server == pytest.approx(rate * 2e6 * ENDPOINT)
    assert found.relay == pytest.approx(rate * 2e6 * 2 * CABLE), "each byte crosses two cables"


def test_faster_than_life_costs_more_and_more_workers_cost_more() -> None:
    one = estimate(plan(), [ASGD], COST, cores=2).share
    assert estimate(plan(time_scale=0.5), [ASGD], COST, cores=2).share == pytest.approx(2 * one, rel=0.02)
    assert estimate(plan(workers=10), [ASGD], COST, cores=2).share == pytest.approx(10 * one)


def test_the_hungriest_variant_counts() -> None:
    assert estimate(plan(), [ASGD, SPARSE], COST, cores=2).variant == "sparse"


def test_little_use_is_admitted_in_silence() -> None:
    assert admit(Admission("asgd", 0.5, 0.2, 0.3, 2), plan()) is None


def test_much_use_is_warned_of_with_numbers_and_remedy() -> None:
    assert admit(Admission("asgd", 1.2, 0.2, 0.4, 2), plan()) == (
        "warning: expected use is 90 % of 2 cores for asgd (workers 1.20, server 0.20, relay 0.40 cores); "
        "`--time-scale 1.2` would slow it down enough"
    )


def test_too_much_is_refused_unless_forced() -> None:
    found = Admission("asgd", 2.0, 0.5, 0.5, 2)
    with pytest.raises(HostError, match=r"expected to use 150 % of 2 cores .*; `--time-scale 0.38` would .*--force"):
        admit(found, plan(time_scale=0.2))
    assert str(admit(found, plan(), force=True)).startswith("warning: expected use is 150 %")


def test_the_path_has_each_direction_by_itself() -> None:
    up, down = Impairment(rate=Rate(1e6), delay=Delay(0.1)), Impairment(rate=Rate(2e6))
    link = LinkPlan("l", Endpoint("a", "e"), Endpoint("b", "e"), up, down)
    two = replace(plan(), links=(link,))
    assert path(two, "a", "b") == [up]
    assert path(two, "b", "a") == [down]
    with pytest.raises(ValueError, match="no way from a to c"):
        path(two, "a", "c")
