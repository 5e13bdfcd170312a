"""The server with workers that come late, lie, die and come back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emulator.core.errors import TrainingError
from emulator.training.context import Lost
from emulator.training.message import Message
from emulator.training.roles.parameter_server import parameter_server
from emulator.training.spec import RoleSpec, Variant, Workload
from tests.unit.training.scripted import Scripted, run

WORKERS = ("w1", "w2")
SIZE = 7850
SPEC = RoleSpec(
    "server", "parameter_server", Workload("softmax"), Variant("v", "comp-asgd"), "server", WORKERS, budget=100.0
)


def pull(worker: str, number: int = 1) -> Message:
    return Message("pull", {"pull": number}, sender=worker)


def push(worker: str, iteration: object = 0, value: float = 1.0, index: int = 3) -> Message:
    arrays = np.array([value], np.float32), np.array([index], np.int32)
    return Message("push", {"iteration": iteration}, arrays, sender=worker)


def serve(*script: tuple[float, Any], spec: RoleSpec = SPEC) -> Scripted:
    context = Scripted("server", WORKERS, script)
    run(parameter_server(context, spec))
    return context


def test_the_budget_starts_at_the_first_pull_and_ends_with_stop_for_all() -> None:
    context = serve((30.0, pull("w1")))
    assert context.of_kind("budget_started")[0]["t"] == 30.0
    assert context.of_kind("stop") == [{"kind": "stop", "t": 130.0, "reason": "budget", "updates": 0}]
    assert [(peer, message.kind) for peer, message in context.sent] == [
        ("w1", "model"),
        ("w1", "stop"),
        ("w2", "stop"),
    ]


def test_snapshots_come_at_whole_multiples_and_at_the_end() -> None:
    assert [t for t, _ in serve((1.25, pull("w1"))).snapshots] == [1.25 + 10 * n for n in range(11)]
    late = serve((0.0, pull("w1")), (37.0, pull("w2")), spec=replace(SPEC, budget=45.0, evaluate_every=20.0))
    assert [t for t, _ in late.snapshots] == [0, 20, 40, 45]


def test_the_last_five_snapshots_may_stand_closer() -> None:
    close = replace(SPEC, budget=45.0, evaluate_every=10.0, evaluate_last=2.0)
    assert [t for t, _ in serve((1.0, pull("w1")), spec=close).snapshots] == [1, 11, 21, 31, 38, 40, 42, 44, 46]
    equal = replace(SPEC, budget=45.0, evaluate_every=10.0, evaluate_last=10.0)
    assert [t for t, _ in serve((0.0, pull("w1")), spec=equal).snapshots] == [0, 5, 15, 25, 35, 45]


def test_pushes_are_applied_and_counted() -> None:
    context = serve((0.0, pull("w1")), (1.0, pull("w2")), (2.0, push("w1")), (3.0, push("w2")), (4.0, pull("w2", 2)))
    updates = context.of_kind("update")
    assert [(item["n"], item["worker"], item["staleness"], item["payload_bytes"]) for item in updates] == [
        (1, "w1", 0, 8),
        (2, "w2", 1, 8),
    ]
    model = context.sent[2][1]
    assert model.fields == {"pull": 2, "iteration": 2, "push_received": 3.0}
    assert model.arrays[0][3] == pytest.approx(-0.2)
    last = context.snapshots[-1][1]
    assert (last["updates"], last["payload_bytes_to_server"]) == (2, 16)
    assert last["message_bytes_to_server"] > sum(item["message_bytes"] for item in updates)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (push("w1", value=float("nan")), "not a finite number"),
        (push("w1", index=SIZE), "below 7850"),
        (push("w1", iteration=7), "the model is at 0"),
        (push("w1", iteration="x"), "iteration -1"),
        (Message("push", {"iteration": 0}, (), sender="w1"), "0 arrays"),
    ],
)
def test_a_malformed_push_is_dropped_recorded_and_answered(bad: Message, reason: str) -> None:
    context = serve((0.0, pull("w1")), (1.0, bad), (2.0, push("w2")))
    assert [item["worker"] for item in context.of_kind("dropped")] == ["w1"]
    assert reason in context.of_kind("dropped")[0]["reason"]
    assert context.sent[1][1].kind == "refused"
    assert [item["worker"] for item in context.of_kind("update")] == ["w2"]


def test_a_message_of_unknown_kind_is_dropped() -> None:
    context = serve((0.0, pull("w1")), (1.0, Message("hello", sender="w2")))
    assert context.of_kind("dropped") == [
        {"kind": "dropped", "t": 1.0, "worker": "w2", "reason": "a server knows no 'hello'"}
    ]


def test_a_worker_that_dies_and_comes_back_is_served_again() -> None:
    context = serve(
        (0.0, pull("w1")), (1.0, Lost("w1", "died")), (5.0, pull("w1")), (6.0, push("w1")), (7.0, pull("w2"))
    )
    assert context.of_kind("lost") == [{"kind": "lost", "t": 1.0, "peer": "w1", "reason": "died"}]
    assert [item["worker"] for item in context.of_kind("pull")] == ["w1", "w1", "w2"]
    assert context.of_kind("update")[0]["n"] == 1


def test_a_push_that_outlives_the_history_is_refused_and_the_rest_goes_on() -> None:
    spec = replace(SPEC, variant=Variant("v", "adacomp"))
    context = serve(
        (0.0, pull("w1")),
        (0.0, pull("w2")),
        (1.0, Lost("w1")),
        (2.0, push("w2")),
        (3.0, pull("w2")),  # Nobody can push from iteration 0 any more, as far as the server knows.
        (4.0, push("w1")),
        (5.0, push("w2", iteration=1)),
        spec=spec,
    )
    assert "older than the history" in context.of_kind("dropped")[0]["reason"]
    assert [item["worker"] for item in context.of_kind("update")] == ["w2", "w2"]


def test_max_updates_ends_the_run_early() -> None:
    context = serve((0.0, pull("w1")), (1.0, push("w1")), (2.0, push("w2")), spec=replace(SPEC, max_updates=1))
    assert context.of_kind("stop") == [{"kind": "stop", "t": 1.0, "reason": "max_updates", "updates": 1}]


def test_without_any_worker_it_gives_up_with_a_sentence() -> None:
    with pytest.raises(TrainingError, match="no worker asked for the model within 600 emulated seconds"):
        serve()
