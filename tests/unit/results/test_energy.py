"""Energy in a summary: by each node's CPU use from the first pull to the stop; not known where the watts are not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from emulator.core.plan import Plan, PowerPlan
from emulator.core.record import encode
from emulator.core.units import Share
from emulator.results.energy import line, rows
from emulator.results.report import render
from emulator.results.summary import summarise
from tests.unit.results import made

if TYPE_CHECKING:
    from pathlib import Path

PI = PowerPlan(3.0, 7.0, 4)


def summary_of(tmp_path: Path, *more: str, power: PowerPlan | None = PI, lab: bool = True, **changes: Any) -> Any:
    """Two workers of which the watts are known, a server of which they are not; 50 s, one sample half way."""
    run = made.run(tmp_path, made.variant("asgd"))
    plan = Plan.from_json(json.dumps(run.read("plan.json")))
    given = {"power": power, "cpus": Share(4), "host_cpus": Share(0.5)} | changes
    nodes = tuple(replace(node, **given) if node.role == "worker" else node for node in plan.nodes)
    run.write_text("plan.json", replace(plan, nodes=nodes).to_json())
    made.write(run, "asgd", made.server_records([0.9] * 5, 1000))
    made.write(run, "asgd", [*(made.lab_records() if lab else []), *more], file="controller")
    run.update(state="finished")
    return summarise(run)


def worker(summary: Any) -> Any:
    return summary["variants"]["asgd"]["repeats"][0]["nodes"][1]


def test_half_of_the_cap_is_half_way_between_idle_and_loaded(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)  # 1.0 CPU seconds in 4 real ones, at a cap of 0.5 host cores
    assert (worker(summary)["watts"], worker(summary)["joules"]) == (5.0, pytest.approx(250.0))
    energy = summary["variants"]["asgd"]["energy"]
    assert (energy["joules"], energy["joules_per_update"], energy["nodes"]) == (500.0, 100.0, 2)
    assert energy["not_known"] == ["server"]


def test_a_node_with_one_of_the_boards_cores_cannot_load_the_others(tmp_path: Path) -> None:
    assert worker(summary_of(tmp_path, cpus=Share(1)))["watts"] == 3.5


def test_what_was_used_before_the_first_pull_does_not_count(tmp_path: Path) -> None:
    early = encode(0.5, "worker-1", "usage", {"cpu_s": 1.0, "real_s": 2.0, "cpu_share": 1.0, "periods": 1})
    assert worker(summary_of(tmp_path, early))["watts"] == 3.0


def test_on_the_virtual_clock_a_worker_is_busy_while_it_computes(tmp_path: Path) -> None:
    assert worker(summary_of(tmp_path, lab=False))["watts"] == pytest.approx(3.0 + 4.0 * 5 / 50)


def test_under_qemu_the_paced_steps_count_and_not_its_cpu_time(tmp_path: Path) -> None:
    paced = encode(20, "worker-1", "paced", {"modelled_s": 10.0, "took_s": 8.0})
    emulated = {"native_cpus": Share(0.1), "arch": "arm64", "cpu_model": "cortex-a72"}
    assert worker(summary_of(tmp_path, paced, **emulated))["watts"] == pytest.approx(3.0 + 4.0 * 10 / 50)


def test_not_known_is_said(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, power=None)
    energy = summary["variants"]["asgd"]["energy"]
    assert (energy["joules"], energy["nodes"]) == (None, 0)
    assert rows(summary["variants"])[0][1:3] == ("not known", "not known")
    assert line(summary["variants"]) == ""


def test_the_report_and_the_terminal_show_it_as_modelled(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    assert line(summary["variants"]) == "energy of 2 nodes (modelled): asgd 500 J; not known for server"
    page = render(summary, [])
    assert "<td>500 J</td><td>100 J</td>" in page
    assert "not a measurement of" in page
