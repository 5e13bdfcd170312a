"""When messages arrive: the arithmetic of the flow model, as timelines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import simpy

from emulator.core.errors import TopologyError
from emulator.core.plan import Impairment, NodePlan, Plan
from emulator.simulation.network import Network
from emulator.simulation.routes import Routes
from tests.unit.simulation.clusters import cable, line, star

# 10 full TCP packets of 1448 bytes, 1500 on the line.
MESSAGE, ON_THE_LINE = 14_480, 15_000


def timeline(plan: Plan, *sends: tuple[float, str, str, int]) -> list[tuple[str, float]]:
    """(what, when it arrived) of messages sent at given times, in order of arrival."""
    env = simpy.Environment()
    network = Network(env, plan)
    seen: list[tuple[str, float]] = []

    def send(at: float, a: str, b: str, nbytes: int, what: str) -> object:
        yield env.timeout(at)
        network.send(a, b, nbytes, lambda: seen.append((what, round(env.now, 9))))

    for number, (at, a, b, nbytes) in enumerate(sends):
        env.process(send(at, a, b, nbytes, f"{number}:{a}-{b}"))
    env.run()
    return seen


def lines(**given: Impairment) -> Mapping[str, Impairment]:
    return given


def test_a_message_takes_the_bottleneck_once_and_all_delays() -> None:
    plan = star(lines(a=line(10, 5), b=line(1, 20)))
    assert timeline(plan, (0.0, "a", "b", MESSAGE)) == [("0:a-b", pytest.approx(ON_THE_LINE * 8 / 1e6 + 0.025))]


def test_without_a_rate_only_the_delay_counts() -> None:
    assert timeline(star(lines(a=line(None, 5), b=line())), (1.0, "a", "b", 10**9)) == [("0:a-b", 1.005)]


def test_two_connections_share_a_line_and_the_rest_has_it_alone_afterwards() -> None:
    plan = star(lines(a=line(), b=line(), c=line(1)))
    alone = ON_THE_LINE * 8 / 1e6
    seen = timeline(plan, (0.0, "a", "c", MESSAGE), (0.0, "b", "c", 2 * MESSAGE))
    assert seen == [("0:a-c", pytest.approx(2 * alone)), ("1:b-c", pytest.approx(3 * alone))]


def test_a_slow_sender_leaves_the_rest_of_the_line_to_others() -> None:
    plan = star(lines(slow=line(1), fast=line(100), sink=line(10)))
    seen = timeline(plan, (0.0, "slow", "sink", MESSAGE), (0.0, "fast", "sink", 9 * MESSAGE))
    both = ON_THE_LINE * 8 / 1e6
    assert sorted(when for _, when in seen) == [pytest.approx(both), pytest.approx(both)]


def test_messages_of_a_pair_go_one_after_another_and_in_order() -> None:
    plan = star(lines(a=line(1, 3, jitter_ms=3), b=line()))
    seen = timeline(plan, *((0.0, "a", "b", 100) for _ in range(50)))
    assert [int(what.split(":")[0]) for what, _ in seen] == list(range(50))


def test_directions_do_not_share() -> None:
    plan = star(lines(a=line(1), b=line(1)))
    alone = ON_THE_LINE * 8 / 1e6
    seen = timeline(plan, (0.0, "a", "b", MESSAGE), (0.0, "b", "a", MESSAGE))
    assert [when for _, when in seen] == [pytest.approx(alone), pytest.approx(alone)]


def test_loss_lengthens_the_transfer_and_total_loss_stops_it() -> None:
    plan = star(lines(a=line(1, loss=0.5), b=line(), c=line(loss=1)))
    seen = timeline(plan, (0.0, "a", "b", MESSAGE), (0.0, "a", "c", MESSAGE))
    assert seen == [("0:a-b", pytest.approx(2 * ON_THE_LINE * 8 / 1e6))]


def test_jitter_is_drawn_from_the_plans_seed() -> None:
    given = lines(a=line(None, 50, jitter_ms=20), b=line())
    sends = [(float(n), "a", "b", 100) for n in range(40)]
    delays = [when - int(what.split(":")[0]) for what, when in timeline(star(given), *sends)]
    assert 0.03 <= min(delays) < 0.04
    assert 0.06 < max(delays) <= 0.07
    assert timeline(star(given), *sends) == timeline(star(given), *sends)
    assert timeline(star(given), *sends) != timeline(star(given, seed=1), *sends)


def test_the_way_goes_by_delay_and_never_through_a_host() -> None:
    nodes = (*map(NodePlan, "abh"), NodePlan("r", kind="router"), NodePlan("s", kind="switch"))
    links = (
        cable("a", "h", line(ms=1)),
        cable("h", "b", line(ms=1)),
        cable("a", "r", line(ms=5)),
        cable("r", "b", line(ms=5)),
        cable("a", "s", line(ms=4)),
        cable("s", "r", line(ms=0.5)),
    )
    routes = Routes(Plan("p", nodes, links))
    assert [hop.end for hop in routes.between("a", "b")] == ["s", "r", "b"]
    assert routes.between("a", "a") == ()
    with pytest.raises(TopologyError, match="a cannot reach x"):
        Routes(Plan("p", (*nodes, NodePlan("x")), links)).between("a", "x")
