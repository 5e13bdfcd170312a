"""Roles on the virtual clock: times, order, losses, errors, and the same bytes for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import DataError, ResultError, TrainingError
from emulator.core.plan import Plan
from emulator.core.record import read
from emulator.simulation.engine import run_roles
from emulator.training import data
from emulator.training.spec import Variant
from tests.unit.simulation.clusters import in_file, line, specs, star

PAIR = star({"server": line(None, 10), "w": line()})


def timeline(tmp_path: Path, text: str, nodes: dict[str, str], plan: Plan = PAIR) -> list[tuple[float, str, Any]]:
    """(time, node, what) that the roles of a file recorded as `saw`."""
    path = in_file(tmp_path / "roles.py", text)
    seen: list[tuple[float, str, Any]] = []
    run_roles(
        plan,
        specs({node: f"{path}:{role}" for node, role in nodes.items()}),
        tmp_path / "out",
        lambda record: seen.append((record["t"], record["node"], record["what"])),
    )
    return seen


def test_computing_takes_flops_over_gflops_and_is_shared_while_it_overlaps(tmp_path: Path) -> None:
    text = """
async def one(ctx, name, flops, after):
    await ctx.sleep(after)
    ctx.record("saw", what=await ctx.compute(str.upper, name, flops=flops))

async def server(ctx, spec):
    ctx.spawn(one(ctx, "short", 1e9, 1.0))
    await one(ctx, "long", 3e9, 0.0)
    await ctx.sleep(0.5)
    ctx.record("saw", what="end")
"""
    seen = timeline(tmp_path, text, {"server": "server"})
    assert seen == [(3.0, "server", "SHORT"), (4.0, "server", "LONG"), (4.5, "server", "end")]


def test_a_message_arrives_as_it_was_sent_even_if_the_sender_changes_it(tmp_path: Path) -> None:
    text = """
async def sender(ctx, spec):
    array = np.ones(3)
    await ctx.send("server", Message("m", {"x": 1}, (array,)))
    array[:] = 7

async def server(ctx, spec):
    message = await ctx.receive()
    ctx.record("saw", what=[message.sender, message.kind, message.fields, message.arrays[0].tolist()])
"""
    assert timeline(tmp_path, text, {"server": "server", "w": "sender"}) == [
        (0.01, "server", ["w", "m", {"x": 1}, [1, 1, 1]])
    ]


def test_waiting_for_one_peer_leaves_the_others_messages(tmp_path: Path) -> None:
    text = """
async def now(ctx, spec):
    await ctx.send("server", Message("now"))

async def later(ctx, spec):
    await ctx.sleep(1)
    await ctx.send("server", Message("later"))

async def server(ctx, spec):
    for peer in ("b", None):
        ctx.record("saw", what=(await ctx.receive(peer)).kind)
    ctx.record("saw", what=type(await ctx.receive("x", timeout=0.5)).__name__)
"""
    plan = star({"server": line(), "a": line(), "b": line()})
    assert timeline(tmp_path, text, {"server": "server", "a": "now", "b": "later"}, plan) == [
        (1.0, "server", "later"),
        (1.0, "server", "now"),
        (1.5, "server", "TimedOut"),
    ]


def test_a_peer_that_ends_is_lost_once_after_all_it_sent(tmp_path: Path) -> None:
    text = """
async def brief(ctx, spec):
    await ctx.send("server", Message("last words"))

async def server(ctx, spec):
    ctx.record("saw", what=(await ctx.receive()).kind)
    ctx.record("saw", what=(await ctx.receive()).peer)
    await ctx.send("w", Message("to nobody"))
    ctx.record("saw", what=type(await ctx.receive(timeout=1.0)).__name__)
"""
    assert [what for *_, what in timeline(tmp_path, text, {"server": "server", "w": "brief"})] == [
        "last words",
        "w",
        "TimedOut",
    ]


def test_first_takes_one_and_the_loser_loses_no_message(tmp_path: Path) -> None:
    text = """
async def both(ctx, spec):
    await ctx.send("server", Message("one"))
    await ctx.send("server", Message("two"))
    await ctx.sleep(9)

async def server(ctx, spec):
    await ctx.sleep(1)
    index, message = await ctx.first(ctx.receive(), ctx.receive())
    ctx.record("saw", what=[index, message.kind])
    index, message = await ctx.first(ctx.sleep(5), ctx.receive())
    ctx.record("saw", what=[index, message.kind])
    index, _ = await ctx.first(ctx.receive(), ctx.sleep(2))
    ctx.record("saw", what=index)
    index, _ = await ctx.first(ctx.compute(int, flops=5e9), ctx.sleep(1))
    await ctx.compute(int, flops=1e9)
    ctx.record("saw", what=index)
"""
    assert timeline(tmp_path, text, {"server": "server", "w": "both"}) == [
        (1.0, "server", [0, "one"]),
        (1.0, "server", [1, "two"]),
        (3.0, "server", 1),
        (5.0, "server", 1),
    ]


def test_a_spawned_task_can_be_cancelled_also_by_itself_and_ends_with_its_role(tmp_path: Path) -> None:
    text = """
async def tick(ctx, name):
    while True:
        await ctx.sleep(1)
        ctx.record("saw", what=name)

async def once(ctx, tasks):
    await ctx.sleep(0.2)
    tasks[0].cancel()
    await ctx.sleep(0.1)
    ctx.record("saw", what="never")

async def server(ctx, spec):
    first, tasks = ctx.spawn(tick(ctx, "a")), []
    tasks.append(ctx.spawn(once(ctx, tasks)))
    ctx.spawn(tick(ctx, "b"))
    await ctx.sleep(1.5)
    first.cancel()
    first.cancel()
    await ctx.sleep(1)
"""
    assert timeline(tmp_path, text, {"server": "server"}) == [
        (1.0, "server", "a"),
        (1.0, "server", "b"),
        (2.0, "server", "b"),
    ]


def test_when_all_wait_a_sentence_names_them_and_since_when(tmp_path: Path) -> None:
    text = """
async def server(ctx, spec):
    await ctx.sleep(2.5)
    await ctx.receive()
"""
    with pytest.raises(TrainingError, match=r"server on server since 2.500 s, .*server on w since 2.500 s"):
        timeline(tmp_path, text, {"server": "server", "w": "server"})


@pytest.mark.parametrize("call", ["await bad()", "ctx.spawn(bad()); await ctx.receive()"])
def test_a_failing_role_ends_the_run_and_its_traceback_stays(tmp_path: Path, call: str) -> None:
    text = f"""
async def server(ctx, spec):
    async def bad():
        await ctx.sleep(1.25)
        raise ZeroDivisionError("oops")
    {call}
"""
    with pytest.raises(TrainingError, match=r"on server at 1.250 s: .*ZeroDivisionError: oops") as caught:
        timeline(tmp_path, text, {"server": "server"})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__traceback__ is not None


def test_an_error_with_a_remedy_keeps_its_class(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"worker on w at .*fetch"):
        run_roles(PAIR, specs({"server": "parameter_server", "w": "worker"}, data_directory=str(tmp_path)), tmp_path)


def test_records_that_cannot_be_written_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="records cannot be written"):
        run_roles(PAIR, specs({"server": "parameter_server"}), tmp_path / "file" / "out")


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    text = """
async def server(ctx, spec):
    ctx.record("saw", what=1)
"""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "server.jsonl").symlink_to("/dev/full")
    with pytest.raises(ResultError, match="No space left on device"):
        timeline(tmp_path, text, {"server": "server"})


def test_a_run_that_diverges_ends_like_any_other(tmp_path: Path, root: str) -> None:
    train(tmp_path / "out", root, "asgd", rate=3e37)
    records = list(read(tmp_path / "out" / "server.jsonl"))
    assert records[-1]["reason"] == "budget"
    assert {r["reason"] for r in records if r["kind"] == "dropped"} == {"a value is not a finite number"}
    assert list(read(tmp_path / "out" / "evaluator.jsonl"))[-1]["loss"] is None


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(data.fetch("synthetic-mnist", tmp_path_factory.mktemp("data")))


def train(
    out: Path, root: str, exchange: str = "adacomp", seed: int = 0, rate: float = 0.05, **roles: str
) -> dict[str, bytes]:
    """The record files of five seconds of training."""
    nodes = {"server": "parameter_server", "w1": "worker", "w2": "worker"} | roles
    lines = {"server": line(100, 1), "w1": line(20, 2, jitter_ms=1), "w2": line(1, 30)}
    variant = Variant(exchange, exchange, learning_rate=rate)
    given = specs(nodes, variant=variant, data_directory=root, seed=seed, budget=5.0, evaluate_every=2.0)
    run_roles(star(lines), given, out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("exchange", ["asgd", "comp-asgd", "adacomp"])
def test_the_same_seed_gives_the_same_bytes_and_learns(tmp_path: Path, root: str, exchange: str) -> None:
    first = train(tmp_path / "a", root, exchange)
    assert first == train(tmp_path / "b", root, exchange)
    assert first != train(tmp_path / "c", root, exchange, seed=1)
    evaluations = list(read(tmp_path / "a" / "evaluator.jsonl"))
    assert [item["snapshot_t"] - evaluations[0]["t"] for item in evaluations] == pytest.approx([0, 2, 4, 5])
    assert evaluations[0]["accuracy"] < 0.2
    assert evaluations[-1]["accuracy"] > 0.9


def test_a_worker_that_dies_right_after_its_push_does_no_harm(tmp_path: Path, root: str) -> None:
    text = """
async def dies(ctx, spec):
    await ctx.send(spec.server, Message("pull", {"pull": 1}))
    await ctx.receive()
    await ctx.send(spec.server, Message("push", {"iteration": 0}, (np.ones(3, np.float32),)))
"""
    path = in_file(tmp_path / "roles.py", text)
    train(tmp_path / "out", root, w2=f"{path}:dies")
    records = list(read(tmp_path / "out" / "server.jsonl"))
    assert [r["peer"] for r in records if r["kind"] == "lost"] == ["w2"]
    assert [r["worker"] for r in records if r["kind"] == "dropped"] == ["w2"]
    assert {r["worker"] for r in records if r["kind"] == "update"} == {"w1"}
    assert records[-1]["kind"] == "stop"


def test_the_server_waits_for_nobody(tmp_path: Path, root: str) -> None:
    text = """
async def late(ctx, spec):
    from emulator.training.roles.worker import worker
    await ctx.sleep(3)
    await worker(ctx, spec)

async def never(ctx, spec):
    await ctx.receive(spec.server)
"""
    path = in_file(tmp_path / "roles.py", text)
    train(tmp_path / "late", root, w2=f"{path}:late")
    updates = [r for r in read(tmp_path / "late" / "server.jsonl") if r["kind"] == "update"]
    assert min(r["t"] for r in updates if r["worker"] == "w1") < 0.1
    assert min(r["t"] for r in updates if r["worker"] == "w2") > 3
    train(tmp_path / "never", root, w2=f"{path}:never")
    records = list(read(tmp_path / "never" / "server.jsonl"))
    assert {r["worker"] for r in records if r["kind"] == "update"} == {"w1"}
