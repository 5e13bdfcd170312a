"""Snapshots, the tail of a record file, and exit codes of a role's process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from emulator.core.errors import DataError, ResultError
from emulator.training import snapshot
from emulator.training.role_process import BUG, guarded
from emulator.training.tail import Tail


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_snapshot_comes_back_as_it_was(directory: int) -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(0, np.float32), np.float32(3.5) * np.ones(())]
    snapshot.write(directory, 7, arrays, {"updates": 3, "snapshot_t": 1.25})
    snapshot.write(directory, 12, arrays[:1], {}, keep=True)
    assert snapshot.waiting(directory) == ["000007.snapshot", "000012.snapshot"]
    found, fields, keep = snapshot.read(directory, "000007.snapshot")
    assert (fields, keep) == ({"updates": 3, "snapshot_t": 1.25}, False)
    assert snapshot.read(directory, "000012.snapshot")[2]
    assert [(a.shape, a.tolist()) for a in found] == [(a.shape, a.tolist()) for a in arrays]
    snapshot.remove(directory, "000007.snapshot")
    assert snapshot.waiting(directory) == ["000012.snapshot"]


def test_half_a_snapshot_is_none(directory: int, tmp_path: Path) -> None:
    (tmp_path / "000001.snapshot.part").write_bytes(b"half")
    assert snapshot.waiting(directory) == []


def test_what_cannot_be_stored_is_a_sentence(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    (tmp_path / "000001.snapshot.part").mkdir()  # stands in for a full disk: the file cannot be made
    try:
        with pytest.raises(ResultError, match=r"^snapshot 1 cannot be written \(Is a directory\); free space"):
            snapshot.write(descriptor, 1, [], {})
    finally:
        os.close(descriptor)


def test_a_tail_gives_each_whole_line_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n":1}\n{"n":2}\n{"n"')
    with Tail(path) as tail, path.open("a") as file:
        assert [item["n"] for item in tail.new()] == [1, 2]
        assert tail.new() == []
        file.write(":3}\n")
        file.flush()
        assert [item["n"] for item in tail.new()] == [3]
        file.write("{half a line\n")
        file.flush()
        with pytest.raises(ResultError, match="is not a record"):
            tail.new()


def test_exit_codes_tell_mistakes_from_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    def mistake() -> None:
        raise DataError("no data", where="here", fix="fetch it")

    def bug() -> None:
        raise KeyError("bug")

    assert guarded(lambda: None) == 0
    assert guarded(mistake) == DataError.exit_code
    assert capsys.readouterr().err == "error: here: no data; fetch it\n"
    assert guarded(bug) == BUG
    assert "Traceback" in capsys.readouterr().err
