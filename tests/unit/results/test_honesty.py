"""The honesty block: what was measured is told, and what spoils a run marks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.core.record import encode
from emulator.results.report import honesty_rows
from emulator.results.summary import summarise
from tests.unit.results import made

if TYPE_CHECKING:
    from pathlib import Path


def summary_of(root: Path, *more: str, **changes: Any) -> dict[str, Any]:
    run = made.run(root, made.variant("asgd"))
    made.write(run, "asgd", [*made.server_records([0.9] * 5, 1000), *made.lab_records(**changes), *more])
    run.update(state="finished")
    return summarise(run)


def test_a_clean_run_has_no_marks_and_all_facts(tmp_path: Path) -> None:
    block = summary_of(tmp_path)["honesty"]
    assert block["marks"] == []
    assert (block["engine"], block["runtime"], block["link_driver"]) == ("emulation", "embedded", "relay")
    assert (block["time_scale"], block["seed"], block["repeats"]) == (0.2, 7, 1)
    assert block["host"] == made.HOST
    assert block["host_busy"] == {"mean": 0.5, "max": 0.5, "background_mean": 0.1}
    assert block["throttling"]["worker-1"] == 0.25
    assert block["drops"] == {"asked": 2, "queue": 4, "unasked": 0}
    assert block["relay"]["lateness_p99_emulated"] == pytest.approx(0.001), "0.2 ms real at time scale 0.2"
    assert block["notes"] == ["a note of the plan"]


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({"busy": 0.95}, "asgd: the host was 95 % busy"),
        ({"unasked": 3}, "6 packets were dropped that nobody asked to drop"),
        ({"restarts": 1}, "restarted 1 times"),
        ({"lateness_p99": 0.01}, "1 % of packets came 50.0 ms or more too late"),
        ({"oom_kills": 1}, "asgd: server ran out of memory"),
    ],
)
def test_what_spoils_a_run_marks_it(tmp_path: Path, changes: dict[str, Any], mark: str) -> None:
    assert mark in " | ".join(summary_of(tmp_path, **changes)["honesty"]["marks"])


def test_a_node_that_died_marks_the_run(tmp_path: Path) -> None:
    died = encode(30, "worker-2", "died", {"code": 0, "signal": 9})
    assert summary_of(tmp_path, died)["honesty"]["marks"] == ["asgd: node worker-2 died"]


@pytest.mark.parametrize(("step_seconds", "marked"), [(0.02, True), (0.09, False)])
def test_a_starved_compute_step_marks_the_run(tmp_path: Path, step_seconds: float, marked: bool) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", [*made.server_records([0.9] * 5, 1000), *made.lab_records()])
    run.update(state="finished", step_seconds=step_seconds)
    block = summarise(run)["honesty"]
    # Half a core at time scale 0.2: ten times the cost. The records say 1 s a step.
    assert block["compute"] == {"expected": pytest.approx(step_seconds * 10), "measured": {"asgd": 1.0}}
    said = ["asgd: a compute step took 5.0 times what the workers' caps allow on an idle host"]
    assert block["marks"] == (said if marked else [])


def test_the_host_is_judged_within_the_budget_only(tmp_path: Path) -> None:
    late = encode(500, "controller", "host", {"busy": 1.0, "background": 0.0})
    assert summary_of(tmp_path, late)["honesty"]["host_busy"]["max"] == 0.5


def test_nodes_use_comes_from_cgroups_and_links(tmp_path: Path) -> None:
    server, first, _ = summary_of(tmp_path)["variants"]["asgd"]["repeats"][0]["nodes"]
    assert (first["node"], first["measured"], first["cpu"], first["throttled"]) == ("worker-1", True, 0.5, 0.25)
    assert (first["sent_bytes"], first["received_bytes"]) == (300, 700)
    assert (server["sent_bytes"], server["received_bytes"]) == (1400, 600), "both cables end at the server"


def test_without_a_lab_the_block_says_what_was_not_measured(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.9] * 5, 1000))
    run.update(state="finished", runtime="fake")
    summary = summarise(run)
    rows = dict(honesty_rows(summary))
    assert rows["Host busy"].startswith("not measured")
    assert rows["CPU throttling"] == "not measured (virtual clock)"
    first = summary["variants"]["asgd"]["repeats"][0]["nodes"][1]
    assert (first["measured"], first["sent_bytes"], first["received_bytes"]) == (False, 5 * 1100, 5 * 1050)
    assert first["cpu"] == pytest.approx(5 / 50), "five steps of 1 s in 50 s"
