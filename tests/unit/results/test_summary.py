"""Summaries from records written by hand: every figure here can be worked out on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import ResultError
from emulator.core.record import encode
from emulator.results.summary import summarise
from emulator.results.trace import Evaluation, Trace
from tests.unit.results import made

if TYPE_CHECKING:
    from pathlib import Path

DENSE, SPARSE = 1_000_000, 20_000


def two(root: Path, asgd: list[float], adacomp: list[float]) -> dict[str, object]:
    """A finished run of a dense baseline and of a variant that sends a fiftieth."""
    run = made.run(root, made.variant("asgd"), made.variant("adacomp", "adacomp", 0.1))
    made.write(run, "asgd", made.server_records(asgd, DENSE))
    made.write(run, "adacomp", made.server_records(adacomp, SPARSE, staleness=4))
    run.update(state="finished")
    return summarise(run)


def test_the_figures_of_each_variant(tmp_path: Path) -> None:
    summary = two(tmp_path, [0.2, 0.6, 0.7, 0.8, 0.9, 0.8], [0.5, 0.9, 0.9, 0.9, 0.9, 1.0])
    asgd = summary["variants"]["asgd"]  # type: ignore[index]
    assert asgd["state"] == "ok"
    assert asgd["final_accuracy"] == pytest.approx((0.6 + 0.7 + 0.8 + 0.9 + 0.8) / 5)
    assert asgd["best_accuracy"] == 0.9
    assert asgd["updates"] == 6
    assert asgd["payload_bytes_to_server"] == 6 * DENSE
    assert asgd["payload_bytes_per_update"] == DENSE
    assert asgd["message_bytes_to_server"] == 6 * (DENSE + 100)
    assert asgd["message_bytes_per_update"] == DENSE + 100
    assert asgd["payload_bytes_from_server"] == 6000
    assert asgd["emulated_seconds"] == 60
    assert asgd["learning_rate"] == 0.02
    assert asgd["staleness_mean"] == 1
    assert (asgd["pull_seconds"], asgd["compute_seconds"], asgd["push_seconds"]) == (2, 1, 3)
    assert asgd["spread"]["updates"] is None, "one repeat has no spread"


def test_reductions_are_relative_to_the_baseline(tmp_path: Path) -> None:
    summary = two(tmp_path, [0.6, 0.8, 0.8, 0.8, 0.8], [0.6, 0.8, 0.9, 0.9, 0.9])
    variants = summary["variants"]
    assert variants["asgd"]["against_baseline"] is None  # type: ignore[index]
    versus = variants["adacomp"]["against_baseline"]  # type: ignore[index]
    assert versus["payload_reduction_per_update"] == 50
    assert versus["message_reduction_per_update"] == pytest.approx((DENSE + 100) / (SPARSE + 100))
    assert versus["payload_reduction_per_accuracy"] == pytest.approx(50 * 0.82 / 0.76)
    assert versus["common_accuracy"] == 0.8
    assert versus["payload_reduction_to_common_accuracy"] == 50, "both reach 0.8 with their second update"
    assert versus["accuracy_gain"] == pytest.approx(0.06)
    assert summary["findings"] == [
        "adacomp ends at 82.0 %, 6.0 points ahead of asgd at equal emulated time, "
        "and sends 50.0 times fewer payload bytes an update."
    ]


@pytest.mark.parametrize(
    ("asgd", "adacomp", "who"), [([0.1] * 5, [0.9] * 5, "asgd"), ([0.9] * 5, [0.1] * 5, "adacomp")]
)
def test_no_win_is_claimed_where_one_diverged(
    tmp_path: Path, asgd: list[float], adacomp: list[float], who: str
) -> None:
    summary = two(tmp_path, asgd, adacomp)
    assert summary["variants"][who]["state"] == "diverged"  # type: ignore[index]
    versus = summary["variants"]["adacomp"]["against_baseline"]  # type: ignore[index]
    assert versus["accuracy_gain"] is None
    assert versus["payload_reduction_per_accuracy"] is None
    assert versus["payload_reduction_to_common_accuracy"] is None
    assert versus["payload_reduction_per_update"] == 50, "bytes are a fact however the training went"
    assert summary["findings"] == [f"{who} diverged (10.0 %, under 50 %): no win is claimed by it or over it."]


def test_half_is_not_diverged(tmp_path: Path) -> None:
    assert two(tmp_path, [0.5] * 5, [0.4999] * 5)["variants"]["asgd"]["state"] == "ok"  # type: ignore[index]


def test_repeats_give_mean_and_spread(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"), repeats=2)
    made.write(run, "asgd", made.server_records([0.8] * 5, DENSE), repeat=0)
    made.write(run, "asgd", made.server_records([0.9] * 6, DENSE), repeat=1)
    asgd = summarise(run)["variants"]["asgd"]
    assert asgd["final_accuracy"] == pytest.approx(0.85)
    assert asgd["spread"]["final_accuracy"] == pytest.approx(0.1 / 2**0.5)
    assert asgd["updates"] == 5.5
    assert [one["seed"] for one in asgd["repeats"]] == [7, 8]


def test_a_run_cut_short_is_incomplete(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"), made.variant("adacomp", "adacomp"))
    made.write(run, "asgd", made.server_records([0.9] * 3, DENSE, stop=False))
    run.update(state="interrupted")
    summary = summarise(run)
    assert summary["state"] == "interrupted"
    assert summary["variants"]["asgd"]["state"] == "incomplete"
    assert list(summary["variants"]) == ["asgd"], "a variant that never ran has no figures"
    assert summary["findings"] == ["asgd did not finish: its figures are partial."]


def test_a_run_cut_short_while_evaluating_is_incomplete(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    lines = made.server_records([0.9] * 5, DENSE)
    made.write(run, "asgd", [line for line in lines if '"evaluation","updates":5' not in line])
    summary = summarise(run)["variants"]["asgd"]
    assert (summary["state"], summary["updates"], summary["repeats"][0]["evaluations"]) == ("incomplete", 5, 4)


def test_a_last_line_cut_off_is_left_out(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.9] * 3, DENSE, stop=False))
    with (run.directory / "asgd" / "0" / "all.jsonl").open("a") as file:
        file.write('{"v":1,"t":99,"node":"server","kind":"upd')
    assert summarise(run)["variants"]["asgd"]["updates"] == 3


def test_a_dropped_push_counts_as_traffic_but_not_as_an_update(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    dropped = {"worker": "worker-1", "reason": "malformed", "payload_bytes": 500, "message_bytes": 600}
    made.write(run, "asgd", [*made.server_records([0.9], DENSE), encode(2, "server", "dropped", dropped)])
    asgd = summarise(run)["variants"]["asgd"]
    assert asgd["updates"] == 1
    assert asgd["payload_bytes_to_server"] == DENSE + 500
    assert asgd["payload_bytes_per_update"] == DENSE
    assert asgd["repeats"][0]["dropped"] == {"malformed": 1}


def test_a_run_without_records_says_so(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    with pytest.raises(ResultError, match=r"this run has no records; run the experiment again$"):
        summarise(run)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", ["not json", *made.server_records([0.9], DENSE)])
    with pytest.raises(ResultError, match=r"all\.jsonl:1: this line is not a record"):
        summarise(run)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"\xff\xfe{}", "this line is not a record"),
        (b"[1]", "this line is not a record"),
        (b'{"v":1,"t":1,"node":"a"}', "this record has no `kind`"),
        (b'{"v":1,"t":"soon","node":"a","kind":"stop"}', "this record has no `t`, or a damaged one"),
        (b'{"v":1,"t":NaN,"node":"a","kind":"stop"}', "this record has no `t`, or a damaged one"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: bytes, sentence: str) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.9], DENSE))
    (run.directory / "asgd" / "0" / "b.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ResultError, match=rf"b\.jsonl:1: {sentence}.*; remove the line or the damaged run"):
        summarise(run)


def test_a_record_without_a_field_is_named(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", [encode(2, "server", "update", {"payload_bytes": 1})])
    with pytest.raises(ResultError, match=r"all\.jsonl: the 'update' record at 2 s has no `message_bytes`; remove"):
        summarise(run)


def test_a_record_file_that_is_a_directory_is_named(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    (run.directory / "asgd" / "0" / "all.jsonl").mkdir(parents=True)
    with pytest.raises(
        ResultError, match=r"all\.jsonl: this file of records cannot be read \(Is a directory\); remove"
    ):
        summarise(run)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("experiment.json", '{"version": 1}', "`variants` is missing or damaged"),
        ("experiment.json", '{"version": 1, "variants": [3]}', "`topology` is missing or damaged"),
        ("plan.json", '{"version": 1}', r"this is not a Plan \(`name` is missing\)"),
        ("plan.json", '{"version": 1, "name": "x", "nodes": [3]}', "this is not a Plan"),
    ],
)
def test_a_damaged_file_of_the_run_is_named(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.9], DENSE))
    (run.directory / file).write_text(text)
    with pytest.raises(ResultError, match=rf"{file}: {sentence}.*; remove this damaged run"):
        summarise(run)


def test_a_model_without_an_update_is_not_part_of_the_final_accuracy() -> None:
    trained = [Evaluation(float(t), t, 0.9, 0.1, 0, 0) for t in (1, 2, 3)]
    assert Trace(evaluations=[Evaluation(0.0, 0, 0.1, 2.3, 0, 0), *trained]).final_accuracy == pytest.approx(0.9)
    assert Trace(evaluations=[Evaluation(0.0, 0, 0.1, 2.3, 0, 0)]).final_accuracy == pytest.approx(0.1)
    assert Trace().final_accuracy is None
