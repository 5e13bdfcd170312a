"""The forms that losses, jitter, order and queues can be written in, and what is said of those that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import TopologyError
from emulator.core.loss import LossModel
from emulator.core.plan import CoDel, Impairment, Plan
from emulator.core.units import Delay
from emulator.topology import load_plan

FILE = """
nodes: {{a: {{}}, b: {{}}}}
links: [{{from: a, to: b, rate: 10 Mbit, delay: 50 ms, {}}}]
"""


def plan_of(tmp_path: Path, keys: str) -> Plan:
    (tmp_path / "lab.yaml").write_text(FILE.format(keys))
    return load_plan(tmp_path / "lab.yaml")


def way(tmp_path: Path, keys: str) -> Impairment:
    return plan_of(tmp_path, keys).links[0].a_to_b


@pytest.mark.parametrize(
    ("written", "model", "share"),
    [
        ("1 %", None, 0.01),
        ("{share: 1 %}", None, 0.01),
        ("{share: 20 %, burst: 8}", LossModel("gilbert-elliott", (0.2 / 8 / 0.8, 0.125, 1.0, 0.0)), 0.2),
        ("{share: 20 %, correlation: 50 %}", LossModel("gilbert-elliott", (0.1, 0.4, 1.0, 0.0)), 0.2),
        ("{p: 1 %, r: 30 %}", LossModel("gilbert-elliott", (0.01, 0.3, 1.0, 0.0)), 0.01 / 0.31),
        (
            "{p: 1 %, r: 9 %, 1-h: 50 %, 1-k: 1 %}",
            LossModel("gilbert-elliott", (0.01, 0.09, 0.5, 0.01)),
            0.1 * 0.5 + 0.9 * 0.01,
        ),
        ("{p13: 2 %, p31: 40 %}", LossModel("4-state", (0.02, 0.4, 0.0, 0.0, 0.0)), 0.02 / 0.42),
    ],
)
def test_losses(tmp_path: Path, written: str, model: LossModel | None, share: float) -> None:
    found = way(tmp_path, f"loss: {written}")
    assert float(found.loss) == pytest.approx(share)
    assert (found.loss_model is None) == (model is None)
    if model is not None and found.loss_model is not None:
        assert found.loss_model.kind == model.kind
        assert found.loss_model.parameters == pytest.approx(model.parameters)


def test_jitter_and_order(tmp_path: Path) -> None:
    found = way(tmp_path, "jitter: {amount: 5 ms, distribution: pareto, correlation: 25 %}, reorder: true")
    assert (found.jitter, found.reorder, found.early) == (Delay(0.005), True, 0)
    assert found.spread is not None and (found.spread.name, found.spread.correlation) == ("pareto", 0.25)
    found = way(tmp_path, "jitter: 5 ms, reorder: {share: 25 %, gap: 5}")
    assert (found.spread, found.reorder, found.early, found.early_gap) == (None, False, 0.25, 5)


def test_ones_own_samples_set_delay_and_jitter(tmp_path: Path) -> None:
    (tmp_path / "rtt.txt").write_text("# from ping\n20\n30 ms\n\n0.04 s\n")
    (tmp_path / "lab.yaml").write_text(
        "nodes: {a: {}, b: {}}\nlinks: [{from: a, to: b, jitter: {distribution: ./rtt.txt}}]\n"
    )
    found = load_plan(tmp_path / "lab.yaml").links[0].a_to_b
    assert float(found.delay) == pytest.approx(0.03)
    assert float(found.jitter) == pytest.approx(0.01 * (2 / 3) ** 0.5)
    assert found.spread is not None and found.spread.samples == pytest.approx((-1.22474, 0, 1.22474), abs=1e-4)
    assert way(tmp_path, "jitter: {distribution: ./rtt.txt}").delay == Delay(0.05), "the file's own delay stays"


def test_queues(tmp_path: Path) -> None:
    found = way(tmp_path, "queue: 100 packets, overhead: 28")
    assert (found.queue_packets, found.queue) == (100, 100 * 1528)
    found = way(tmp_path, "queue: {limit: 256 KiB, aqm: codel, interval: 60 ms}")
    assert (found.queue, found.codel) == (256 * 1024, CoDel(Delay(0.005), Delay(0.06)))
    assert found.scaled(2).codel == CoDel(Delay(0.01), Delay(0.12))
    assert way(tmp_path, "queue: {aqm: codel}").queue == way(tmp_path, "mtu: 1500").queue


def test_one_direction_alone(tmp_path: Path) -> None:
    link = plan_of(tmp_path, "loss: {share: 1 %, burst: 4}, duplicate: 1 %, up: {loss: 2 %, corrupt: 3 %}").links[0]
    assert (link.a_to_b.loss, link.a_to_b.loss_model, link.a_to_b.corrupt) == (0.02, None, 0.03)
    assert link.b_to_a.loss_model is not None and link.b_to_a.corrupt == 0
    assert link.a_to_b.duplicate == link.b_to_a.duplicate == 0.01


def test_a_plan_is_read_back_equal(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "jitter: {amount: 5 ms, distribution: normal}, loss: {p: 1 %, r: 30 %}, reorder: 5 %, duplicate: 1 %, "
        "corrupt: 1 %, queue: {limit: 50 packets, aqm: codel}",
    )
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("loss: 150 %", "'150 %' is more than 100 %"),
        ("loss: 100 %", "a loss of 100 % lets nothing through"),
        ("loss: {share: 1 %, burst: 0.5}", "`burst`: 0.5 is not a mean number of packets"),
        ("loss: {share: 60 %, burst: 1}", "a share of 60 % has longer bursts than 1; raise `burst`"),
        ("loss: {burst: 5}", "write a loss like"),
        ("loss: {share: 1 %, p: 1 %, r: 1 %}", "do not go together"),
        ("loss: {p: 1 %}", "the gilbert-elliott model needs r as well"),
        ("loss: {p: 1 %, r: 0}", "once bad the line stays bad"),
        ("loss: {p: 1 %, r: 1 %, h: 1 %}", "a loss has no 'h'; use share"),
        ("loss: {p13: 60 %, p31: 1 %, p14: 60 %}", "p13 + p14 is 120 %"),
        ("loss: {p13: 1 %, p31: 1 %, p32: 1 %}", "p23 is 0"),
        ("jitter: 80 ms", "a jitter of 80 ms is more than the delay of 50 ms"),
        ("jitter: {amount: 5 ms, distribution: gauss}", "no distribution is named 'gauss'"),
        ("jitter: {distribution: normal}", "`amount` is missing"),
        ("jitter: {amount: 5 ms, correlation: 100 %}", "would never change"),
        ("jitter: {distribution: ./none.txt}", "the distribution ./none.txt cannot be used (No such file"),
        ("jitter: {distribution: ./one.txt}", "a distribution needs at least two samples"),
        ("jitter: {distribution: ./words.txt}", "line 2: "),
        ("reorder: 120 %", "'120 %' is more than 100 %"),
        ("reorder: {gap: 5}", "`share` is missing"),
        ("reorder: {share: 1 %, gap: 0}", "`gap`: 0 is not a number of packets"),
        ("duplicate: 120 %", "a duplicate of 120 % is more than all"),
        ("corrupt: 120 %", "a corrupt of 120 % is more than all"),
        ("queue: {aqm: red}", "a queue cannot be managed by 'red'"),
        ("queue: {target: 5 ms}", "add `aqm: codel`"),
        ("queue: {aqm: codel, target: 200 ms}", "must be above 0 and below its interval"),
        ("queue: {length: 5 ms}", "a queue has no 'length'"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_with_its_line(tmp_path: Path, keys: str, said: str) -> None:
    (tmp_path / "one.txt").write_text("20\n")
    (tmp_path / "words.txt").write_text("20\nsoon\n")
    with pytest.raises(TopologyError) as caught:
        way(tmp_path, keys)
    text = str(caught.value)
    assert said in text and "lab.yaml:3" in text and "\n" not in text


def test_a_managed_queue_needs_a_rate(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("nodes: {a: {}, b: {}}\nlinks: [{from: a, to: b, queue: {aqm: codel}}]\n")
    with pytest.raises(TopologyError, match="needs a rate"):
        load_plan(tmp_path / "lab.yaml")
