"""HPL's speed on one core: one thread whatever the user's environment says, kept if it took long, no busy host."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import HostError
from emulator.experiment.linpack import host
from tests.unit.linpack.printed import FAILED, PASSED


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(host.calibration, "busy_by", lambda: "")


def xhpl(folder: Path, text: str) -> Path:
    """A program that prints this with one thread and nothing with more, and counts its runs."""
    (folder / "text").write_text(text, encoding="utf-8")
    path = folder / "xhpl"
    script = f'echo run >> {folder}/runs\n[ "$OPENBLAS_NUM_THREADS $OMP_NUM_THREADS" = "1 1" ] && cat {folder}/text'
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("quiet")
def test_it_is_measured_with_one_thread_at_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    program = xhpl(tmp_path, PASSED)
    for _ in range(2):
        assert host.core_rate(program, 2000, 128, force=False, say=print) == (pytest.approx(8.842e9), "")
    assert (tmp_path / "runs").read_text().count("run") == 2 * host.RUNS


@pytest.mark.usefixtures("quiet")
def test_what_takes_long_is_measured_once_for_each_size_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "LONG", 0.1)
    program = xhpl(tmp_path, PASSED)
    for _ in range(2):
        assert host.core_rate(program, 2000, 128, force=False, say=print) == (pytest.approx(8.842e9), "")
    assert (tmp_path / "runs").read_text().count("run") == 1
    host.core_rate(program, 3000, 128, force=False, say=print)
    assert (tmp_path / "runs").read_text().count("run") == 2


@pytest.mark.usefixtures("quiet")
def test_a_busy_host_is_refused_and_not_kept_when_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.calibration, "busy_by", lambda: "a loop uses 0.98 of a core")
    program = xhpl(tmp_path, PASSED)
    with pytest.raises(HostError, match=r"a loop uses 0\.98 of a core; stop that or wait"):
        host.core_rate(program, 2000, 128, force=False, say=print)
    assert host.core_rate(program, 2000, 128, force=True, say=print)[1] == "a loop uses 0.98 of a core"
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("quiet")
def test_a_wrong_solution_is_no_reference(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="HPL's result on this host is wrong"):
        host.core_rate(xhpl(tmp_path, FAILED), 2000, 128, force=False, say=print)
