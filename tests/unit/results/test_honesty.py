"""The honesty block: what was measured is told, and what spoils a run marks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from emulator.core.record import encode
from emulator.core.units import Share
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
        ({"oom_kills": 1}, "asgd: server ran out of memory: the kernel ended 1 program there (it held up to 19 MiB of"),
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


def emulated(root: Path, overran: int, cpu_model: str = "cortex-a72") -> dict[str, Any]:
    """The block of a run of 200 steps on workers that QEMU emulates."""
    run = made.run(root, made.variant("asgd"))
    plan = made.plan()
    changes: dict[str, Any] = {"arch": "arm64", "cpu_model": cpu_model, "native_cpus": Share(0.5)}
    nodes = tuple(replace(node, **changes) if node.role == "worker" else node for node in plan.nodes)
    run.write_text("plan.json", replace(plan, nodes=nodes).to_json())
    took = [0.06] * overran + [0.03] * (200 - overran)
    steps = [encode(2, f"worker-{n % 2 + 1}", "paced", {"modelled_s": 0.05, "took_s": s}) for n, s in enumerate(took)]
    made.write(run, "asgd", [*made.server_records([0.9] * 5, 1000), *made.lab_records(), *(steps if cpu_model else [])])
    run.update(state="finished", pacing="QEMU is fast enough" if cpu_model else None)
    summary = summarise(run)
    if cpu_model:
        assert dict(honesty_rows(summary))["Emulated processors"].startswith("QEMU is fast enough; QEMU took")
    return dict(summary["honesty"])


def test_times_of_emulated_nodes_that_kept_pace_are_the_devices(tmp_path: Path) -> None:
    block = emulated(tmp_path, overran=2)
    assert block["marks"] == []
    assert block["notes"][-1] == (
        "worker-1, worker-2 ran arm64 programs under QEMU (cortex-a72), paced to the calibrated device: "
        "asgd 50 ms a step, 2 of 200 steps overran; times are the model's, not QEMU's"
    )
    assert block["pacing"]["measured"]["asgd"] == {
        "paced": 200, "overran": 2, "device_s": pytest.approx(0.05), "host_s": pytest.approx(0.0303),
    }  # fmt: skip


def test_emulated_nodes_that_did_not_keep_pace_mark_the_run(tmp_path: Path) -> None:
    block = emulated(tmp_path, overran=3)
    assert "3 of 200 steps overran" in block["notes"][-1]
    assert "the model's" not in block["notes"][-1]
    assert block["marks"] == [
        "asgd: 3 of 200 steps under QEMU took longer than on the device: no timing can be concluded"
    ]


def test_emulated_nodes_that_nothing_paces_mark_the_run(tmp_path: Path) -> None:
    assert emulated(tmp_path, 0, cpu_model="")["marks"] == [
        "worker-1, worker-2: QEMU ran their programs at no device's pace: no timing can be concluded"
    ]


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


def overload(t: float, value: float, node: str = "controller", **changes: object) -> str:
    fields = {
        "cause": "outside",
        "value": value,
        "limit": 0.15,
        "what": f"used {value}",
        "fix": "end it",
        "since": t - 2,
    }
    return encode(t, node, "overload", fields | changes)


def test_an_overload_degrades_a_run_once_with_its_worst_and_its_times(tmp_path: Path) -> None:
    block = summary_of(tmp_path, overload(5.0, 0.3), overload(6.0, 0.7), overload(7.0, 0.4))["honesty"]
    assert block["marks"] == block["degraded"] == ["asgd: used 0.7, from 2.0 to 6.0 s (emulated); end it"]
    (entry,) = block["overloads"]
    assert (entry["variant"], entry["node"], entry["cause"], entry["value"]) == ("asgd", "", "outside", 0.7)


def test_an_overload_names_its_node_and_each_node_by_itself(tmp_path: Path) -> None:
    marks = summary_of(tmp_path, overload(5.0, 0.5, "worker-1", cause="starved"), overload(5.0, 0.3))["honesty"][
        "marks"
    ]
    assert marks[0].startswith("asgd, worker-1: used 0.5, from ") and marks[1].startswith("asgd: used 0.3, from ")


def test_what_was_over_before_the_first_pull_is_no_mark(tmp_path: Path) -> None:
    assert summary_of(tmp_path, overload(0.5, 0.9))["honesty"]["marks"] == []


def test_a_node_that_died_marks_a_run_but_is_not_the_hosts_fault(tmp_path: Path) -> None:
    block = summary_of(tmp_path, encode(3.0, "worker-1", "died", {"code": 1, "signal": 0}))["honesty"]
    assert (block["marks"], block["degraded"]) == (["asgd: node worker-1 died"], [])


def test_the_messages_that_a_cap_pays_for_beside_a_step_starve_nobody(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", [*made.server_records([0.9] * 5, 1000), *made.lab_records()])
    run.update(state="finished", step_seconds=0.02, cycle_seconds={"asgd": 0.06})
    assert summarise(run)["honesty"]["marks"] == [], "0.6 of the 1.0 emulated seconds"
