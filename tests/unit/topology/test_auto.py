"""`time_scale: auto` on topologies whose needs can be worked out on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.core.units import Size
from emulator.devices import costs
from emulator.devices.delivery import Curve
from emulator.devices.host import HostSpeed
from emulator.devices.profile import profile
from emulator.topology import load, resolve
from emulator.topology.auto import flows, least, round_up

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.core.plan import Plan

PI = profile("rpi-4").core_gflops or 0.0
#: lines that cost the relay next to nothing
SLOW = ", rate: 1 kbit"


@pytest.fixture(autouse=True)
def whole_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody had measured what a capped second is worth on the host that tests."""
    monkeypatch.setattr("emulator.topology.assemble.known", lambda _kind: Curve())


def planned(tmp_path: Path, text: str, cores: int = 2, device_cores: float = 10.0, scale: object = "auto") -> Plan:
    """The Plan on a host each core of which is worth so many of a Raspberry Pi 4's."""
    path = tmp_path / "t.yaml"
    path.write_text(text)
    host = HostSpeed(PI * device_cores, cores, Size(64 << 30), arch="amd64")
    return resolve(load(path), time_scale=scale, host=host)  # type: ignore[arg-type]


def pis(count: int, more: str = "") -> str:
    return (
        f"nodes: {{w: {{device: rpi-4, count: {count}}}, hub: {{kind: switch}}}}\nlinks: [{{from: w-*, to: hub{more}}}]"
    )


def test_the_caps_of_all_nodes_fit_with_head_room(tmp_path: Path) -> None:
    plan = planned(tmp_path, pis(10, SLOW))
    assert sum(node.host_cpus for node in plan.machines) <= costs.USE * 2
    assert plan.time_scale == pytest.approx(10 * 0.4 / (costs.USE * 2 - costs.OWN), rel=0.05)
    assert plan.notes[0].startswith("time scale 2.6 was chosen (auto); what limits it: 10 nodes may use 1.5 host cores")


def test_what_a_capped_second_lacks_is_reckoned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planned(tmp_path, pis(10, SLOW)).time_scale
    monkeypatch.setattr("emulator.topology.assemble.known", lambda _kind: Curve(((0.05, 0.8), (0.9, 0.8))))
    plan = planned(tmp_path, pis(10, SLOW))
    assert plan.time_scale == pytest.approx(whole / 0.8, rel=0.05)
    assert sum(node.quota for node in plan.machines) <= costs.USE * 2


def test_a_larger_host_is_faster(tmp_path: Path) -> None:
    small, large = planned(tmp_path, pis(10, SLOW)).time_scale, planned(tmp_path, pis(10, SLOW), cores=16).time_scale
    assert large < 1 < small


def test_one_thread_needs_a_core_as_fast_as_the_devices(tmp_path: Path) -> None:
    plan = planned(tmp_path, pis(2), cores=64, device_cores=0.5)
    assert plan.time_scale == 2.0
    assert "a core of w-1 (rpi-4) is then as fast as one of this host" in plan.notes[0]


def test_lateness_limits_a_cluster_that_needs_little(tmp_path: Path) -> None:
    plan = planned(tmp_path, pis(1, ", rate: 1 Mbit").replace("count: 1", "count: 2, cpus: 0.1"), cores=64)
    assert plan.time_scale == pytest.approx(costs.LATENESS / costs.NEVER_LATE)
    assert "packets come up to 0.4 real ms late" in plan.notes[0]


def test_many_fast_lines_are_limited_by_the_relay(tmp_path: Path) -> None:
    plan = planned(tmp_path, pis(20, ", rate: 1 Gbit"), cores=64, device_cores=100)
    assert "one relay, which runs on one core, carries all links when all are full" in plan.notes[0]
    assert costs.carrying(flows(plan), plan.time_scale) <= costs.USE


def test_a_line_carries_no_more_than_what_lies_behind_it(tmp_path: Path) -> None:
    text = (
        "nodes: {s: , r: {kind: router}, a: , b: }\n"
        "links: [{from: s, to: r, rate: 1 Gbit}, {from: a, to: r, up: 1 Mbit, down: 8 Mbit}, "
        "{from: b, to: r, rate: 5 Mbit}]"
    )
    assert [rate for _, rate in flows(planned(tmp_path, text, scale=1.0))] == [13e6, 8e6, 5e6]


def test_lines_without_a_rate_ask_for_nothing(tmp_path: Path) -> None:
    assert flows(planned(tmp_path, "nodes: {a: , b: }\nlinks: [{from: a, to: b}]", scale=1.0)) == []


def test_the_file_may_say_auto_and_an_argument_goes_before_it(tmp_path: Path) -> None:
    text = "time_scale: auto\n" + pis(10)
    assert planned(tmp_path, text, scale=None).time_scale == planned(tmp_path, pis(10)).time_scale
    assert planned(tmp_path, text, scale=3.0).time_scale == 3.0


def test_the_least_that_fits() -> None:
    assert least(lambda scale: 3 / scale, 2.0) == pytest.approx(1.5, rel=0.006)
    assert least(lambda scale: 3 / scale, 2.0) >= 1.5
    assert [round_up(value) for value in (0.0204, 1.5, 151.0, 0.999)] == [0.021, 1.5, 160.0, 1.0]
