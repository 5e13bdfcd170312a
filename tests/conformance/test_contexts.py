"""One body of small roles over both engines: a role must not be able to tell them apart (but for speed)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from emulator.core.enter import EnterToken
from emulator.core.errors import TrainingError
from emulator.core.plan import Endpoint, Impairment, LinkPlan, NodePlan, Plan
from emulator.core.record import read
from emulator.core.units import Delay, Rate, Size
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.zygote import Zygote

TOYS = Path(__file__).parent.parent / "toy_roles.py"
Run = Callable[..., Mapping[str, list[dict[str, Any]]]]


def _specs(roles: Mapping[str, str]) -> list[RoleSpec]:
    addresses = tuple((node, f"127.77.0.{number}") for number, node in enumerate(roles, 2))
    workers = tuple(node for node in roles if node != "server")
    return [
        RoleSpec(
            node=node,
            role=f"{TOYS}:{role}",
            workload=Workload(),
            variant=Variant("toy"),
            server="server",
            workers=workers,
            seed=5,
            time_scale=0.5,
            addresses=addresses,
            port=5601,
        )
        for node, role in roles.items()
    ]


def _star(nodes: Mapping[str, str]) -> Plan:
    line = Impairment(rate=Rate(100e6), delay=Delay(0.001), queue=Size(10e6))
    links = [LinkPlan(f"{node}--hub", Endpoint(node, "eth0"), Endpoint("hub", node), line, line) for node in nodes]
    machines = [NodePlan(node, gflops=10.0) for node in nodes]
    return Plan("toys", (*machines, NodePlan("hub", kind="switch")), tuple(links))


def _saw(out: Path, nodes: Mapping[str, str]) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        for item in read(out / f"{node}.jsonl"):
            assert item["kind"] == "saw"
            found[node].append({key: item[key] for key in item if key not in ("v", "t", "node", "kind")})
    return found


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as warm:
        yield warm


@pytest.fixture(params=["fake", "lab"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run toy roles on the engine, by node; returns what each saw."""

    def simulated(**roles: str) -> Mapping[str, list[dict[str, Any]]]:
        from emulator.simulation.engine import run_roles

        run_roles(_star(roles), _specs(roles), tmp_path)
        return _saw(tmp_path, roles)

    def real(**roles: str) -> Mapping[str, list[dict[str, Any]]]:
        from emulator.training.launch import run_roles

        tokens = {node: EnterToken(node) for node in roles}
        outcome = run_roles(request.getfixturevalue("zygote"), tokens, _specs(roles), tmp_path)
        assert not outcome.died, (tmp_path / f"{outcome.died[0]}.log").read_text()
        return _saw(tmp_path, roles)

    return simulated if request.param == "fake" else real


def test_what_is_sent_arrives_whole(run: Run) -> None:
    saw = run(server="pong", a="ping", b="ping")
    assert saw["server"] == [{"what": "all gone"}]
    expected = [{"n": number, "equal": True} for number in range(10)]
    assert saw["a"] == expected
    assert saw["b"] == expected


def test_order_holds_and_a_loss_comes_once_after_all_messages(run: Run) -> None:
    saw = run(server="collect", a="count", b="count")
    assert saw["server"] == [
        {"worker": "a", "numbers": list(range(100))},
        {"worker": "b", "numbers": list(range(100))},
        {"afterwards": "TimedOut"},
    ]


def test_first_loses_no_message(run: Run) -> None:
    (saw,) = run(server="choose", a="linger", b="linger")["server"]
    assert saw["numbers"] == [list(range(100)), list(range(100))]
    assert saw["winners"] == [0, 1]
    assert saw["last"] == [2, "None"]


def test_a_timeout_arrives_as_a_value_and_loses_nothing(run: Run) -> None:
    saw = run(server="wait", a="late")
    assert saw["server"] == [{"first": "TimedOut", "early": False, "then": "late", "at_once": "TimedOut"}]


def test_receive_can_choose_the_peer(run: Run) -> None:
    assert run(server="pick", a="linger", b="linger")["server"] == [{"order": ["b", "a"]}]


def test_an_array_may_change_after_send(run: Run) -> None:
    assert run(server="check_once", a="once")["server"] == [{"untouched": True}]


def test_spawn_compute_and_random_streams(run: Run) -> None:
    (saw,) = run(server="alone", a="nothing")["server"]
    assert saw["ticks_after_cancel"] == 0
    assert saw["product"] == 42
    assert saw["peers"] == ["a"]
    # The same on every engine: these are the draws of seed 5, node "server".
    assert saw["draws"] == DRAWS
    assert saw["others"] != DRAWS


def test_an_error_in_a_spawned_coroutine_ends_the_role(run: Run) -> None:
    with pytest.raises(TrainingError, match="the spawned one failed"):
        run(server="fail_in_spawned")


def test_a_bug_in_a_role_is_told_with_its_name(run: Run) -> None:
    with pytest.raises(TrainingError, match="ZeroDivisionError"):
        run(server="fail_in_compute")


DRAWS = [758770, 355087, 706117, 846364]
