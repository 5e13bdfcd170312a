"""What a person sees while an experiment runs."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.experiment.progress import Board, Lines, Row, watching


def record(kind: str, t: float, **fields: Any) -> dict[str, Any]:
    return {"v": 1, "t": t, "node": "server", "kind": kind, **fields}


RECORDS = [
    record("budget_started", 2.0),
    record("update", 12.0, payload_bytes=1_000_000, staleness=2),
    record("update", 22.0, payload_bytes=1_000_000, staleness=4),
    record("evaluation", 20.0, accuracy=0.5),
]


def test_a_row_counts_from_the_first_pull() -> None:
    row = Row("adacomp", 1, budget=100.0)
    assert row.status() == "starting"
    for item in RECORDS:
        row.take(item)
    assert row.cells() == ("adacomp #2", "50.0 %", "2", "2 MB", "3.0", "80 s left")
    row.backlog = 3
    assert row.status() == "evaluating, 3 left"


def test_lines_go_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with watching() as watcher:
        assert isinstance(watcher, Lines), "a test has no terminal"
        watcher.begin("asgd", 0, 100.0)
        for item in RECORDS:
            watcher.record(item)
        watcher.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "asgd: accuracy 50.0 %, 2 updates, 2 MB to server, staleness 3.0, done\n"


def test_the_board_draws_every_variant(capsys: pytest.CaptureFixture[str]) -> None:
    with Board() as board:
        board.note("a note")
        for name in ("asgd", "adacomp"):
            board.begin(name, 0, 100.0)
            for item in RECORDS:
                board.record(item)
            board.end()
    err = capsys.readouterr().err
    assert "a note" in err
    for text in ("asgd", "adacomp", "50.0 %", "done"):
        assert text in err
