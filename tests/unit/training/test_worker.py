"""The worker: its steps, and a server that is lost for a while or for good."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.training import data
from emulator.training.context import Lost
from emulator.training.message import Message
from emulator.training.roles.worker import worker
from emulator.training.spec import RoleSpec, Variant, Workload
from tests.unit.training.scripted import Scripted, run


@pytest.fixture(scope="session")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RoleSpec:
    root: Path = data.fetch("synthetic-mnist", tmp_path_factory.mktemp("data"))
    workload = Workload("softmax", "synthetic-mnist")
    return RoleSpec("w1", "worker", workload, Variant("v"), "server", ("w1", "w2"), data_directory=str(root))


def model(pull: int, iteration: int, received: float | None = None) -> Message:
    fields = {"pull": pull, "iteration": iteration, "push_received": received}
    return Message("model", fields, (np.zeros(7850, np.float32),), sender="server")


STOP = Message("stop", sender="server")


def work(spec: RoleSpec, *script: tuple[float, Message | Lost]) -> Scripted:
    context = Scripted("w1", ("server",), script)
    run(worker(context, spec))
    return context


def test_a_step_is_pull_compute_push(spec: RoleSpec) -> None:
    context = work(spec, (2.0, model(1, 7)), (6.0, model(2, 8, 5.0)), (9.0, STOP))
    assert [message.kind for _, message in context.sent] == ["pull", "push", "pull", "push", "pull"]
    assert [m.fields["iteration"] for _, m in context.sent if m.kind == "push"] == [7, 8]
    (step,) = context.of_kind("step")
    assert (step["pull_s"], step["compute_s"], step["push_s"]) == (2.0, 0.0, 3.0)
    assert step["loss"] == pytest.approx(np.log(10), rel=1e-6)
    assert context.of_kind("stop")[0]["reason"] == "told to stop"


def test_an_answer_to_an_older_pull_is_not_taken(spec: RoleSpec) -> None:
    context = work(spec, (1.0, Lost("server")), (10.0, model(1, 3)), (11.0, model(2, 4)), (12.0, STOP))
    assert [m.fields["iteration"] for _, m in context.sent if m.kind == "push"] == [4]


def test_a_refusal_is_recorded_and_work_goes_on(spec: RoleSpec) -> None:
    refused = Message("refused", {"reason": "too old"}, sender="server")
    context = work(spec, (1.0, model(1, 0)), (2.0, refused), (3.0, model(2, 5)), (4.0, STOP))
    assert context.of_kind("refused") == [{"kind": "refused", "t": 2.0, "reason": "too old"}]
    assert context.of_kind("step") == []


def test_a_server_that_stays_lost_ends_the_worker(spec: RoleSpec) -> None:
    context = work(spec, (1.0, Lost("server", "cut")))
    assert context.of_kind("lost")[0]["reason"] == "cut"
    assert context.of_kind("stop")[0]["reason"] == "server stays lost"


def test_a_broken_model_gives_a_loss_that_a_record_can_hold(spec: RoleSpec) -> None:
    broken = Message("model", {"pull": 1, "iteration": 0}, (np.full(7850, np.inf, np.float32),), sender="server")
    context = work(spec, (1.0, broken), (2.0, model(2, 0, 1.5)), (3.0, STOP))
    assert context.of_kind("step")[0]["loss"] is None
