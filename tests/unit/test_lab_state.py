"""The lab's directory: reserved at once or not at all, locked by its changer, never left by a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.core.errors import LabError, UsageError
from emulator.core.lab_id import LabId
from emulator.core.plan import Plan
from emulator.lab import state


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabId:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path))
    return LabId.of("demo")


def _as_other_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


LOCKED = """
from emulator.core.lab_id import LabId
from emulator.lab import state
with state.locked(LabId.of("demo")) as mine:
    print(mine)
"""


def test_reserved_appears_locked_and_with_its_first_state(lab: LabId) -> None:
    with state.reserved(lab, "embedded", "relay"):
        found = state.read(lab)
        assert found is not None
        assert (found.phase, found.runtime, found.link_driver) == ("making", "embedded", "relay")
        assert _as_other_process(LOCKED) == "False"
    assert _as_other_process(LOCKED) == "True"
    assert state.names(lab.root) == ["demo"]


def test_a_name_is_reserved_once(lab: LabId) -> None:
    with state.reserved(lab, "embedded", "relay"):
        state.set_phase(lab, state.UP)
    with (
        pytest.raises(LabError, match=r"a lab named 'demo' is there already; stop it with `emu down demo`"),
        state.reserved(lab, "embedded", "netem"),
    ):
        raise AssertionError("never entered")
    kept = state.read(lab)
    assert kept is not None and kept.link_driver == "relay"
    assert state.names(lab.root) == ["demo"] and state.abandoned(lab.root) == []


def test_a_child_does_not_inherit_the_lock(lab: LabId) -> None:
    with state.reserved(lab, "embedded", "relay"):
        child = os.fork()
        if child == 0:
            os.execvp("sleep", ["sleep", "20"])
    try:
        assert _as_other_process(LOCKED) == "True"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_directory_of_a_killed_reservation_is_found(lab: LabId) -> None:
    dead = lab.directory.parent / ".demo.999999999"
    dead.mkdir(parents=True)
    alive = lab.directory.parent / f".other.{os.getpid()}"
    alive.mkdir()
    assert state.abandoned(lab.root) == [dead]
    assert state.names(lab.root) == []


def test_a_torn_state_reads_as_none(lab: LabId) -> None:
    lab.directory.mkdir(parents=True)
    for text in ("", '{"name": "de', '{"unknown": 1}'):
        (lab.directory / "lab.json").write_text(text)
        assert state.read(lab) is None


def test_the_plan_comes_back_equal(lab: LabId) -> None:
    plan = Plan("demo", (), (), time_scale=0.5, seed=7)
    with state.reserved(lab, "embedded", "relay"):
        state.write_plan(lab, plan)
    assert state.read_plan(lab) == plan


def test_an_unreadable_plan_is_a_sentence(lab: LabId) -> None:
    with state.reserved(lab, "embedded", "relay"):
        (lab.directory / "plan.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(
        LabError, match=r"the plan of lab 'demo' cannot be read \(Plan version 99 .*; remove the lab with"
    ):
        state.read_plan(lab)


def test_the_journal_has_a_line_for_each_thing(lab: LabId) -> None:
    with state.reserved(lab, "embedded", "relay"):
        journal = state.FileJournal(lab)
        journal("netns", "a")
        journal("cgroup", "b")
        journal.close()
    lines = [json.loads(line) for line in (lab.directory / "journal.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["name"]) for line in lines] == [("netns", "a"), ("cgroup", "b")]


@pytest.mark.parametrize("name", ["", "Upper", "a b", "../x", "-x", "x" * 41])
def test_unusable_lab_names(name: str) -> None:
    with pytest.raises(UsageError, match="is not a lab name"):
        LabId.of(name)
