"""Device profiles and the calibration of this host."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from emulator.core.errors import HostError, TopologyError
from emulator.devices import host, names, profile
from emulator.devices.host import cache_file, calibration


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "emu" / "host.json"


@pytest.mark.parametrize("name", names())
def test_every_figure_has_a_source(name: str) -> None:
    device = profile(name)
    assert device.title
    for figure in (device.cores, device.memory, device.sgemm_gflops):
        assert figure is None or (figure.value > 0 and figure.source)
    if device.sgemm_gflops:
        assert device.sgemm_gflops.derived, "no public source gives an SGEMM figure of a board"


def test_a_pi_4_is_worth_its_derived_figure() -> None:
    device = profile("rpi-4")
    assert device.core_gflops == pytest.approx(15.8 / 4)
    assert device.memory
    assert device.memory.value == 4 * 2**30


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(TopologyError, match="no device 'rpi4'; did you mean 'rpi-4'"):
        profile("rpi4")
    with pytest.raises(TopologyError, match="use one of cm4"):
        profile("../../etc/passwd")


def test_calibration_measures_once_and_keeps_it_without_starting_threads(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wrong kernel choice in the environment must not reach the measurement: this one dies of an illegal
    # instruction, or is ignored, depending on the CPU.
    monkeypatch.setenv("OPENBLAS_CORETYPE", "SkylakeX")
    threads = os.listdir("/proc/self/task")
    first = calibration()
    assert not first.cached
    assert os.listdir("/proc/self/task") == threads
    assert 0.5 < first.gflops < 1000
    assert first.cores == len(os.sched_getaffinity(0))
    second = calibration()
    assert second.cached
    assert second.gflops == first.gflops
    assert cache_file() == cache


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": "y"}', "\x00\xff", "null"])
def test_a_damaged_cache_is_measured_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(host, "_measure", lambda: 42.0)
    cache.parent.mkdir()
    cache.write_text(text)
    assert (calibration().gflops, calibration().cached) == (42.0, True)
    assert 42.0 in json.loads(cache.read_text()).values()
    assert [path.name for path in cache.parent.iterdir()] == ["host.json"]


@pytest.mark.parametrize("value", [-1, 0, 1e9, "fast", None, True])
def test_a_cached_figure_that_cannot_be_is_measured_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    monkeypatch.setattr(host, "_measure", lambda: 42.0)
    calibration()
    entries = json.loads(cache.read_text())
    cache.write_text(json.dumps(dict.fromkeys(entries, value)))
    assert not calibration().cached


def test_another_kernel_is_another_measurement(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_measure", lambda: 42.0)
    calibration()
    monkeypatch.setattr(host, "_key", lambda: "a CPU | 7.0-new | numpy 2")
    assert not calibration().cached
    assert len(json.loads(cache.read_text())) == 2


def test_an_unwritable_cache_only_costs_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(host, "_measure", lambda: 42.0)
    assert calibration().gflops == 42.0
    assert not calibration().cached


def test_a_host_that_cannot_be_measured_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.sys, "executable", "/bin/false")
    with pytest.raises(HostError, match=r"cannot be measured \(exit code 1\)"):
        calibration()
    assert not cache.exists()


def test_an_interpreter_that_may_not_be_started_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python3"
    python.write_text("")  # no x bit: not even root may start it
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(HostError, match="this user may not start the Python that emu runs on; "):
        host._measure()
