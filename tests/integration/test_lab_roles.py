"""Roles as processes on loopback: the warmed process, the launcher, deaths of every kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from emulator.core.enter import EnterToken
from emulator.core.errors import ExperimentError, RuntimeFailure, TrainingError
from emulator.core.record import read
from emulator.training import data
from emulator.training.crew import Crew
from emulator.training.evaluator import yield_to_others
from emulator.training.launch import run_roles
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.zygote import Zygote

TOYS = Path(__file__).parent.parent / "toy_roles.py"
WORKLOAD = Workload(model="softmax", dataset="synthetic-mnist", shards=20)


def _specs(roles: dict[str, str], port: int = 5602) -> list[RoleSpec]:
    addresses = tuple((node, f"127.78.0.{number}") for number, node in enumerate(roles, 2))
    workers = tuple(node for node in roles if node != "server")
    return [
        RoleSpec(
            node=node,
            role=role if role in ("parameter_server", "worker") else f"{TOYS}:{role}",
            workload=WORKLOAD,
            variant=Variant("toy", learning_rate=0.05),
            server="server",
            workers=workers,
            index=max(0, number - 1),
            addresses=addresses,
            port=port,
        )
        for number, (node, role) in enumerate(roles.items())
    ]


def _tokens(roles: dict[str, str]) -> dict[str, EnterToken]:
    return {node: EnterToken(node) for node in roles}


def _saw(path: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k not in ("v", "t", "node", "kind")} for item in read(path)]


def _until(done: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote(Workload()) as warm:  # with torch
        warm.wait_ready()
        yield warm
        assert _children(warm.pid) == [], "a test left a process behind"


def test_the_warmed_process_has_one_thread_and_its_children_may_have_more(zygote: Zygote, tmp_path: Path) -> None:
    assert len(list(Path(f"/proc/{zygote.pid}/task").iterdir())) == 1
    roles = {"server": "parallel"}
    run_roles(zygote, _tokens(roles), _specs(roles), tmp_path)
    (saw,) = _saw(tmp_path / "server.jsonl")
    assert saw["threads"] >= 1, "the parallel region used no second thread"
    assert len(list(Path(f"/proc/{zygote.pid}/task").iterdir())) == 1


def test_shared_size_is_the_frameworks(zygote: Zygote) -> None:
    assert 100e6 < zygote.shared_size() < 1e9


def test_parameter_server_and_workers_train(zygote: Zygote, tmp_path: Path) -> None:
    directory = str(data.fetch("synthetic-mnist", tmp_path / "data"))
    roles = {"server": "parameter_server", "a": "worker", "b": "worker"}
    specs = [
        replace(spec, data_directory=directory, budget=6.0, evaluate_every=1.0, time_scale=0.5, max_updates=400)
        for spec in _specs(roles)
    ]
    seen: list[dict[str, Any]] = []
    ticks: list[float] = []
    out = tmp_path / "run"
    outcome = run_roles(zygote, _tokens(roles), specs, out, seen.append, on_tick=ticks.append)
    assert outcome.exits == dict.fromkeys(roles, (0, 0)) | {"evaluator": outcome.exits["evaluator"]}
    assert ticks == sorted(ticks)
    updates = [item for item in seen if item["kind"] == "update"]
    assert len(updates) == 400 or outcome.seconds >= 6.0
    assert {item["worker"] for item in updates} == {"a", "b"}
    # What is left at the end is evaluated by several processes at once, so not always in order.
    evaluations = sorted((item for item in seen if item["kind"] == "evaluation"), key=lambda item: item["snapshot_t"])
    assert len({item["snapshot_t"] for item in evaluations}) == len(evaluations)
    assert evaluations[-1]["updates"] == len(updates)
    assert evaluations[-1]["accuracy"] > 0.9 > evaluations[0]["accuracy"]
    assert all(
        item["node"] == "evaluator" and item["t"] == pytest.approx(item["snapshot_t"], abs=1e-6) for item in evaluations
    )
    assert not (out / "snapshots").exists()
    written = [item for path in out.glob("*.jsonl") for item in read(path)]
    assert sorted(map(json.dumps, written)) == sorted(map(json.dumps, seen))


def test_a_worker_killed_mid_push_is_lost_and_one_restarted_is_welcome(zygote: Zygote, tmp_path: Path) -> None:
    specs = {spec.node: spec for spec in _specs({"server": "survive", "a": "die_mid_push"})}
    with Crew(zygote, tmp_path, lambda _: None) as crew:

        def fork(spec: RoleSpec) -> None:
            crew.fork(spec.node, EnterToken(spec.node), {"job": "role", "spec": asdict(spec), "origin": 0.0})

        def ended(node: str) -> bool:
            crew.step(0.1)
            return node not in crew.running

        for spec in specs.values():
            fork(spec)
        _until(lambda: ended("a"))
        assert crew.exits["a"].signal == signal.SIGKILL
        _until(lambda: any(item.get("lost") == "a" for item in _saw(tmp_path / "server.jsonl")))
        assert "server" in crew.running
        fork(replace(specs["a"], role=f"{TOYS}:greet"))
        _until(lambda: ended("server"))
    saw = _saw(tmp_path / "server.jsonl")
    losses = [item for item in saw if "lost" in item]
    assert losses == [{"lost": "a", "reason": "connection closed"}]
    after = saw[saw.index(losses[0]) + 1 :]
    assert after == [{"sender": "a", "message": "hello"}, {"sender": "a", "message": "end"}]
    # The successor got its own echo only, none of what was meant for its predecessor.
    assert _saw(tmp_path / "a.jsonl") == [{"echoes": 1}]


def test_a_dead_worker_is_recorded_and_the_run_goes_on(zygote: Zygote, tmp_path: Path) -> None:
    roles = {"server": "survive", "a": "die_mid_push", "b": "greet_late"}
    seen: list[dict[str, Any]] = []
    outcome = run_roles(zygote, _tokens(roles), _specs(roles), tmp_path, seen.append)
    assert outcome.died == ("a",)
    (died,) = [item for item in seen if item["kind"] == "died"]
    assert (died["node"], died["code"], died["signal"]) == ("a", 0, signal.SIGKILL)
    assert outcome.exits["server"] == (0, 0)


def test_a_run_whose_workers_all_failed_does_not_wait_for_its_server(zygote: Zygote, tmp_path: Path) -> None:
    roles = {"server": "survive", "a": "fail_in_compute", "b": "die"}
    with pytest.raises(TrainingError, match="all workers have failed, the last one like this: the process ended"):
        run_roles(zygote, _tokens(roles), _specs(roles), tmp_path)
    assert _children(zygote.pid) == []


def test_a_dead_server_ends_the_run_with_a_sentence(zygote: Zygote, tmp_path: Path) -> None:
    roles = {"server": "die", "a": "stubborn"}
    with pytest.raises(TrainingError, match=r"^server: the process ended by SIGKILL; see "):
        run_roles(zygote, _tokens(roles), _specs(roles), tmp_path)
    assert _children(zygote.pid) == []


def test_workers_that_do_not_stop_are_killed(zygote: Zygote, tmp_path: Path) -> None:
    roles = {"server": "nothing", "a": "stubborn", "b": "stubborn"}
    specs = [replace(spec, time_scale=0.01) for spec in _specs(roles)]
    outcome = run_roles(zygote, _tokens(roles), specs, tmp_path)
    assert outcome.exits["a"][1] in (signal.SIGTERM, signal.SIGKILL)
    assert outcome.died == ()
    assert _children(zygote.pid) == []


def test_an_interrupt_stops_all_at_once(zygote: Zygote, tmp_path: Path) -> None:
    roles = {"server": "stubborn", "a": "stubborn"}

    def interrupt(_: float) -> None:
        if len(_children(zygote.pid)) == 3:
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_roles(zygote, _tokens(roles), _specs(roles), tmp_path, on_tick=interrupt)
    assert time.monotonic() - begun < 10
    assert _children(zygote.pid) == []
    assert not (tmp_path / "snapshots").exists()


def test_mistakes_are_sentences(zygote: Zygote, tmp_path: Path) -> None:
    (spec,) = _specs({"server": "nothing"})
    with pytest.raises(TrainingError, match="exit status 11; its last words: error: no role is called 'sever'"):
        run_roles(zygote, {"server": EnterToken("server")}, [replace(spec, role="sever")], tmp_path / "1")
    elsewhere = replace(spec, addresses=(("server", "203.0.113.9"),))
    with pytest.raises(TrainingError, match=r"cannot listen on tcp://203\.0\.113\.9:5602"):
        run_roles(zygote, {"server": EnterToken("server")}, [elsewhere], tmp_path / "2")
    gone = EnterToken("server", namespaces=(("net", "/proc/1/ns/no-such"),))
    with pytest.raises(RuntimeFailure, match="the node is gone"):
        run_roles(zygote, {"server": gone}, [spec], tmp_path / "3")
    assert _children(zygote.pid) == []


def test_an_unknown_model_is_told_before_anything_runs() -> None:
    with Zygote(replace(WORKLOAD, model="resnt")) as cold, pytest.raises(ExperimentError, match="resnt"):
        cold.wait_ready()


def test_roles_die_with_the_warmed_process(tmp_path: Path) -> None:
    (spec,) = _specs({"server": "stubborn"}, port=5603)
    with Zygote(WORKLOAD) as warm:

        def kill(_: float) -> None:
            if children := _children(warm.pid):
                pids.extend(children)
                os.kill(warm.pid, signal.SIGKILL)

        pids: list[int] = []
        with pytest.raises(TrainingError, match="the warmed training process has ended"):
            run_roles(warm, {"server": EnterToken("server")}, [spec], tmp_path, on_tick=kill)
        assert pids
        _until(lambda: not any(_alive(pid) for pid in pids))


CONTROLLER = """
import sys
from dataclasses import asdict
from pathlib import Path
from emulator.core.enter import EnterToken
from emulator.training.evaluator import yield_to_others
from emulator.training.launch import run_roles
from emulator.training.spec import RoleSpec, Workload
from emulator.training.zygote import Zygote
spec = RoleSpec.from_json(sys.argv[1])
zygote = Zygote(spec.workload)
print(zygote.pid, flush=True)
run_roles(zygote, {"server": EnterToken("server")}, [spec], Path(sys.argv[2]))
"""


def test_all_die_with_the_controller(tmp_path: Path) -> None:
    (spec,) = _specs({"server": "stubborn"}, port=5604)
    command = [sys.executable, "-c", CONTROLLER, spec.to_json(), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        _until(lambda: len(_children(pid)) == 2, 60.0)
        pids = [pid, *_children(pid)]
        controller.kill()
        _until(lambda: not any(_alive(pid) for pid in pids))


def test_a_role_also_runs_without_a_warmed_process(tmp_path: Path) -> None:
    (spec,) = _specs({"server": "alone"}, port=5605)
    records = os.open(tmp_path / "server.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    read_end, write_end = os.pipe()
    os.write(write_end, json.dumps({"spec": asdict(spec), "origin": time.monotonic(), "records": records}).encode())
    os.close(write_end)
    command = [sys.executable, "-m", "emulator.training", str(read_end)]
    try:
        subprocess.run(command, pass_fds=[read_end, records], check=True, timeout=60)
    finally:
        os.close(read_end)
        os.close(records)
    (saw,) = _saw(tmp_path / "server.jsonl")
    assert saw["product"] == 42


def test_the_way_without_a_warmed_process_tells_mistakes(tmp_path: Path) -> None:
    for arguments in ([], ["x"], ["63"]):
        done = subprocess.run(
            [sys.executable, "-m", "emulator.training", *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2
        assert done.stderr.startswith("error: python -m emulator.training: ")
        assert "Traceback" not in done.stderr


def test_the_evaluator_takes_next_to_nothing_from_a_busy_role(tmp_path: Path) -> None:
    """Both on one core for two seconds: the shares go by priority, however busy the host is otherwise."""
    core = min(os.sched_getaffinity(0))

    def burn(prepare: Callable[[], None]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                os.sched_setaffinity(0, {core})
                prepare()
                end = time.monotonic() + 2.0
                while time.monotonic() < end:
                    pass
            finally:
                os._exit(0)
        return pid

    role, background = burn(os.setsid), burn(yield_to_others)
    usage = {pid: os.wait4(pid, 0)[2].ru_utime for pid in (role, background)}
    assert usage[role] > 0.1
    assert usage[background] < 0.05 * usage[role]
