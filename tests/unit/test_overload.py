"""The overload monitor on made-up readings: each limit is found when it is passed, and only then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.core.plan import Endpoint, Impairment, LinkPlan, NodePlan, Plan
from emulator.core.processes import Program
from emulator.core.units import Delay, Share
from emulator.lab.load import Load, Wait
from emulator.lab.overload import WINDOW, Monitor, Overload, Reading, judge, jumps, outside
from tests.quiet_host import QUIET, later

#: a browser that idles, and a shell whose children come and go
BROWSER, SHELL = (10, 1), (20, 2)


def plan(time_scale: float = 0.5, delay: float = 0.01) -> Plan:
    nodes = (NodePlan("server", host_cpus=Share(2.0)), NodePlan("w", host_cpus=Share(0.4)))
    link = LinkPlan("l", Endpoint("server", "e"), Endpoint("w", "e"), Impairment(delay=Delay(delay)), Impairment())
    return Plan("p", nodes, (link,), time_scale=time_scale)


def causes(a: Load, b: Load, **reading: Any) -> list[str]:
    return [one.cause for one in judge(Reading(a), Reading(b, **reading), plan())]


def test_a_quiet_host_has_nothing_to_tell() -> None:
    assert causes(QUIET, later()) == []
    assert list(jumps(QUIET, later(seconds=1.2), due=1.0)) == []


@pytest.mark.parametrize(("stolen", "found"), [(0.15, []), (0.25, ["steal"])])
def test_steal_over_two_percent(stolen: float, found: list[str]) -> None:
    assert causes(QUIET, later(steal=1.0 + stolen)) == found, "of 10 CPU seconds"


def test_a_busy_loop_outside_is_named() -> None:
    before = replace(QUIET, outside={BROWSER: Program(1, 7.0, 0.0, "browser")})
    now = later(before, outside={BROWSER: Program(1, 7.2, 0.0, "browser"), (30, 9): Program(1, 4.0, 0.0, "loop")})
    (found,) = judge(Reading(before), Reading(now), plan())
    assert (found.cause, found.node) == ("outside", "")
    assert found.value == pytest.approx(0.84)
    assert found.what == "programs outside the lab used 0.84 host cores (limit 0.15): loop (pid 30) 0.80"


def test_a_node_s_process_that_ends_is_no_program_outside() -> None:
    before = replace(QUIET, threads={"w": {30: Wait(1.0, 1.0)}})
    now = later(before, outside={(30, 9): Program(1, 4.0, 0.0, "python3")})
    assert causes(before, now) == []
    assert causes(QUIET, now) == ["outside"]


def test_an_idle_browser_is_no_thief() -> None:
    before = replace(QUIET, outside={BROWSER: Program(1, 7.0, 0.0, "browser")})
    assert causes(before, later(before, outside={BROWSER: Program(1, 7.5, 0.0, "browser")})) == []


def test_children_that_come_and_go_between_looks_count_once() -> None:
    compiler = (21, 5)
    before = {SHELL: Program(1, 1.0, 10.0, "make"), compiler: Program(20, 0.5, 0.0, "cc")}
    after = {SHELL: Program(1, 1.0, 14.0, "make")}
    assert outside(before, after) == {20: pytest.approx(3.5)}, "half a second of cc was there before"


def test_a_child_that_nobody_waits_for_takes_nothing_back() -> None:
    before = {SHELL: Program(1, 1.0, 0.0, "sh"), (22, 6): Program(20, 9.0, 0.0, "job")}
    assert outside(before, {SHELL: Program(1, 1.5, 0.0, "sh")}) == {20: pytest.approx(0.5)}


def test_a_whole_family_that_ends_is_no_new_use_of_its_ancestor() -> None:
    before = {
        SHELL: Program(1, 1.0, 0.0, "sh"),
        (21, 3): Program(20, 0.0, 0.0, "make"),
        (22, 4): Program(21, 9.0, 0.0, "cc"),
    }
    assert outside(before, {SHELL: Program(1, 1.0, 9.5, "sh")}) == {20: pytest.approx(0.5)}
    orphan = {(1, 0): Program(0, 0.0, 3.0, "init"), (23, 5): Program(1, 9.0, 0.0, "job")}
    assert outside(orphan, {(1, 0): Program(0, 0.0, 12.0, "init")}) == {}


def starved(ran: float, waited: float, got: float) -> list[Overload]:
    before = Reading(replace(QUIET, threads={"w": {7: Wait(1.0, 1.0)}}), {"w": 10.0})
    now = later(before.load, threads={"w": {7: Wait(1.0 + ran, 1.0 + waited)}})
    return list(judge(before, Reading(now, {"w": 10.0 + got}), plan()))


def test_a_node_that_waits_for_others_is_starved() -> None:
    (found,) = starved(ran=0.8, waited=4.2, got=0.8)
    assert (found.cause, found.node) == ("starved", "w")
    assert found.value == pytest.approx(0.6), "2 s were due to it under its cap of 0.4"


def test_a_node_held_back_by_its_own_quota_is_not() -> None:
    assert starved(ran=2.0, waited=3.0, got=2.0) == []


def test_a_node_with_little_to_do_is_not() -> None:
    assert starved(ran=0.2, waited=0.8, got=0.2) == []


def test_what_other_threads_did_in_all_their_lives_is_no_wait_of_the_one_that_is_left() -> None:
    """As read of a worker that was ending: 1.38 s more, of a node that had used 0.11 s."""
    assert starved(ran=1.38, waited=5.2, got=0.11) == []


def test_lateness_counts_in_emulated_time() -> None:
    assert causes(QUIET, later(), late=0.0009) == [], "1.8 ms at time scale 0.5"
    (found,) = judge(Reading(QUIET), Reading(later(), late=0.0015), plan())
    assert (found.cause, found.value, found.limit) == ("lateness", 0.003, 0.002)
    assert list(judge(Reading(QUIET), Reading(later(), late=0.0015), plan(delay=0.1))) == [], "a twentieth of 100 ms"


@pytest.mark.parametrize(
    ("available", "stalled", "found"), [(0.8, 4.0, []), (0.05, 3.1, []), (0.05, 3.4, ["memory"]), (0.05, None, [])]
)
def test_memory_that_is_waited_for_while_little_is_free(
    available: float, stalled: float | None, found: list[str]
) -> None:
    assert causes(QUIET, later(available=available, stalled=stalled)) == found


def test_swap() -> None:
    assert causes(QUIET, later(swapped=4 << 20)) == []
    assert causes(QUIET, later(swapped=6 << 20)) == ["swap"]


def test_a_suspended_host_a_set_clock_and_a_stall() -> None:
    asleep = later(seconds=1.0, boot=QUIET.boot + 61.0, wall=QUIET.wall + 61.0)
    assert [one.what for one in jumps(QUIET, asleep, due=1.0)] == ["the host was suspended for 60.0 s"]
    put_back = later(seconds=1.0, wall=QUIET.wall - 9.0)
    assert [one.what for one in jumps(QUIET, put_back, due=1.0)] == ["the host's wall clock was set by -10.0 s"]
    assert [one.cause for one in jumps(QUIET, later(seconds=9.0), due=1.0)] == ["stood still"]


def monitored(thief: list[float], last: bool = False) -> list[list[str]]:
    """The causes found second by second, while a program outside uses these CPU seconds in each."""
    monitor, load, used, found = Monitor(plan(), due=1.0), QUIET, 0.0, []
    monitor.take(Reading(replace(load, outside={BROWSER: Program(1, 0.0, 0.0, "x")})))
    for number, cpu in enumerate(thief, 1):
        used += cpu
        load = later(load, 1.0, outside={BROWSER: Program(1, used, 0.0, "x")})
        taken = monitor.take(Reading(load), last=last and number == len(thief))
        found.append([one.cause for one in taken])
    return found


def test_a_blip_is_no_overload_and_a_window_is_enough() -> None:
    assert monitored([0, 0, 0.5, 0, 0, 0, 0, 0]) == [[]] * 8
    assert monitored([1.0] * 7)[int(WINDOW) - 2 :] == [[], ["outside"], ["outside"], ["outside"]]


def test_a_short_run_is_judged_at_its_end() -> None:
    assert monitored([1.0, 1.0], last=True) == [[], ["outside"]]
