"""Where runs lie: found by what people type, never half written."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from emulator.core.errors import ResultError
from emulator.results import store
from emulator.results.listing import listing
from emulator.results.report import rebuild
from emulator.results.table import runs_table
from tests.unit.results import made


def test_two_runs_of_one_second_have_directories_of_their_own(tmp_path: Path) -> None:
    ids = {store.create(tmp_path, "made", 7).id for _ in range(3)}
    assert len(ids) == 3


def test_runs_are_found_by_name_id_path_and_latest(tmp_path: Path) -> None:
    first, second = store.create(tmp_path, "one", 1), store.create(tmp_path, "two", 2)
    assert store.find("one", tmp_path) == first
    assert store.find(second.id, tmp_path) == second
    assert store.find(f"one/{first.id}", tmp_path) == first
    assert store.find(str(first.directory), tmp_path).directory == first.directory.resolve()
    assert store.find("latest", tmp_path) == store.runs(tmp_path)[0]


def test_a_miss_names_the_nearest(tmp_path: Path) -> None:
    store.create(tmp_path, "adacomp-mnist", 1)
    with pytest.raises(ResultError, match=r"there is no run 'adacomp-minst' in .*; did you mean 'adacomp-mnist'\?"):
        store.find("adacomp-minst", tmp_path)


def test_no_runs_at_all(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"latest: there are no runs in .*; make one with `emu experiment quick`"):
        store.find("latest", tmp_path)
    assert listing(tmp_path) == []


def test_a_run_whose_process_is_gone_counts_as_interrupted(tmp_path: Path) -> None:
    run = store.create(tmp_path, "made", 7)
    assert run.state() == "running"
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    run.update(pid=child, process="1")
    assert run.state() == "interrupted"
    run.update(pid=os.getpid(), process="1")
    assert run.state() == "interrupted", "another process has the number now"


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.create(tmp_path, "made", 7)
    before = (run.directory / "run.json").read_bytes()

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(ResultError, match=r"No space left.*; free some space; what was written so far stays"):
            run.update(state="finished")
    assert (run.directory / "run.json").read_bytes() == before
    assert sorted(path.name for path in run.directory.iterdir()) == ["run.json"]


def test_a_run_that_cannot_be_made_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ResultError, match="No space left"):
        store.create(tmp_path, "made", 7)
    assert list((tmp_path / "made").iterdir()) == []


def test_another_version_is_refused(tmp_path: Path) -> None:
    run = store.create(tmp_path, "made", 7)
    (run.directory / "run.json").write_text('{"version": 2}')
    with pytest.raises(ResultError, match=r"format version 2 is not known \(this emu reads 1\)"):
        run.read("run.json")


def test_the_list_has_accuracies_and_survives_a_damaged_run(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.8] * 5, 1_000_000))
    run.update(state="finished")
    rebuild(run)
    broken = store.create(tmp_path, "broken", 1)
    (broken.directory / "run.json").write_text("junk")
    found = {item["name"]: item for item in listing(tmp_path)}
    assert found["made"]["state"] == "finished"
    assert found["made"]["final_accuracy"] == {"asgd": pytest.approx(0.8)}
    assert found["made"]["marks"] == []
    assert found["broken"]["state"] == "unreadable"


SUMMARIES = (
    '{"version": 1}',
    '{"version": 1, "variants": [], "honesty": {"marks": []}}',
    '{"version": 1, "variants": {"asgd": {}}, "honesty": {"marks": []}}',
    '{"version": 1, "variants": {"asgd": {"final_accuracy": "high"}}, "honesty": {"marks": []}}',
    '{"version": 1, "variants": {}}',
    "junk",
)


@pytest.mark.parametrize("text", SUMMARIES)
def test_a_damaged_summary_leaves_the_list_whole(tmp_path: Path, text: str) -> None:
    store.create(tmp_path, "sound", 1)
    (store.create(tmp_path, "broken", 1).directory / "summary.json").write_text(text)
    states = {item["name"]: item["state"] for item in listing(tmp_path)}
    assert states == {"sound": "running", "broken": "unreadable"}


@pytest.mark.parametrize("facts", [{"pid": "abc"}, {"pid": [1]}, {"pid": None}, {"state": "dancing"}])
def test_a_damaged_run_json_leaves_the_list_whole(tmp_path: Path, facts: dict[str, Any]) -> None:
    store.create(tmp_path, "sound", 1)
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.8], 1000))
    run.update(**facts)
    states = {item["name"]: item["state"] for item in listing(tmp_path)}
    assert states == {"sound": "running", "made": "unreadable"}
    with pytest.raises(ResultError, match=r"run\.json: .* cannot be .*; remove this damaged run"):
        rebuild(run)


def test_the_date_of_a_run_breaks_at_its_space_only(tmp_path: Path) -> None:
    item = {"date": "2026-11-30 10:11:12", "name": "adacomp-mnist", "id": "20261130-101112-1", "state": "finished"}
    console = Console(width=40, record=True, file=io.StringIO())
    console.print(runs_table([item | {"final_accuracy": {}, "marks": []}]))
    dates = [line[:10].strip() for line in console.export_text().splitlines()]
    assert [text for text in dates if text] == ["date", "2026-11-30", "10:11:12"]
