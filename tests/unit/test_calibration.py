"""The calibration of this host: measured once, kept, marked on a busy host, redone when something changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.core.errors import HostError
from emulator.devices import calibration, quiet
from emulator.devices.host import calibration as worth
from emulator.devices.kernels import NAMES, Reading, added, expand
from emulator.devices.kernels.reading import Work, measure
from emulator.devices.speed import Speed


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "emu" / "calibration.json"


class Host:
    """Stands in for measuring: 42 GFLOPS, and `busy` by somebody."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.busy = ""
        self.measured: list[str] = []
        monkeypatch.setattr(calibration, "measure", self._measure)
        monkeypatch.setattr(calibration, "busy_by", lambda: self.busy)

    def _measure(self, kernels: Sequence[str]) -> dict[str, Speed]:
        self.measured += kernels
        return {name: Speed("FLOP/s", 42e9, 40e9, 70e9, busy=self.busy, when=1e9) for name in kernels}


@pytest.fixture
def host(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    yield Host(monkeypatch)


def test_a_first_use_measures_what_it_needs_and_keeps_it_without_starting_threads(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wrong kernel choice in the environment must not reach the measurement: this one dies of an illegal
    # instruction, or is ignored, depending on the CPU.
    monkeypatch.setenv("OPENBLAS_CORETYPE", "SkylakeX")
    monkeypatch.setattr(calibration, "busy_by", lambda: "somebody")  # a busy test machine is not measured twice
    threads = os.listdir("/proc/self/task")
    first = worth()
    assert not first.cached
    assert os.listdir("/proc/self/task") == threads
    assert 0.5 < first.gflops < 1000
    assert first.cores == len(os.sched_getaffinity(0))
    speed = first.speed("sgemm")
    assert speed.unit == "FLOP/s" and speed.all > 0 and speed.loaded > 0
    second = worth()
    assert second.cached
    assert second.gflops == first.gflops
    assert list(*json.loads(cache.read_text()).values()) == ["sgemm"]


def test_a_kernel_is_measured_when_it_is_asked_for(host: Host) -> None:
    one = worth()
    assert host.measured == ["sgemm"]
    assert one.speed("dgemm").one == one.speed("dgemm").one == 42e9
    assert host.measured == ["sgemm", "dgemm"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": "y"}', "\x00\xff", "null"])
def test_a_damaged_cache_is_measured_anew(host: Host, cache: Path, text: str) -> None:
    cache.parent.mkdir()
    cache.write_text(text)
    assert (worth().gflops, worth().cached) == (42.0, True)
    assert host.measured == ["sgemm"]
    assert not list(cache.parent.glob(".calibration*"))


@pytest.mark.parametrize("value", [-1.0, 0.0, 1e19, "fast", None, True])
def test_a_kept_figure_that_cannot_be_is_measured_anew(host: Host, cache: Path, value: object) -> None:
    worth()
    entries = json.loads(cache.read_text())
    for kernels in entries.values():
        kernels["sgemm"]["loaded"] = value
    cache.write_text(json.dumps(entries))
    assert not worth().cached


def test_another_kernel_or_library_is_another_measurement(
    host: Host, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worth()
    monkeypatch.setattr(calibration, "_version", lambda package: "99")
    assert not worth().cached
    assert len(json.loads(cache.read_text())) == 2


def test_an_unwritable_cache_only_costs_the_time(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert worth().gflops == 42.0
    assert not worth().cached


def test_a_host_that_cannot_be_measured_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration.sys, "executable", "/bin/false")
    with pytest.raises(HostError, match=r"cannot be measured \(exit code 1\)"):
        worth()
    assert not cache.exists()


def test_an_interpreter_that_may_not_be_started_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python3"
    python.write_text("")  # no x bit: not even root may start it
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(HostError, match="this user may not start the Python that emu runs on; "):
        calibration.measure(["sgemm"])


def test_what_was_measured_on_a_busy_host_is_marked_and_measured_again_on_a_quiet_one(host: Host) -> None:
    host.busy = "python3 (pid 9) uses 0.98 of a core"
    assert worth().speed("sgemm").busy
    assert "was measured while it was busy (python3 (pid 9)" in calibration.doubts()[0]
    assert worth().cached, "still busy: measuring again would tell nothing new"
    host.busy = ""
    assert not worth().cached
    assert calibration.doubts() == []


def test_a_whole_calibration_is_refused_on_a_busy_host_and_names_who(host: Host) -> None:
    host.busy = "python3 (pid 9) uses 0.98 of a core"
    with pytest.raises(HostError, match=r"busy.*: python3 \(pid 9\) uses 0.98 of a core; .*--force"):
        calibration.whole()
    assert host.measured == []
    assert all(speed.busy for speed in calibration.whole(force=True, anew=True).values())
    host.busy = ""
    assert not any(speed.busy for speed in calibration.whole().values())
    count = len(host.measured)
    assert calibration.whole() == calibration.whole()
    assert len(host.measured) == count, "what is kept is not measured again"


def test_somebody_else_on_the_cpu_is_named_and_a_process_of_ours_is_not() -> None:
    loop = "import time; end = time.monotonic() + 1\nwhile time.monotonic() < end: pass"
    watch = quiet.Watch()
    ours = subprocess.Popen([sys.executable, "-c", loop])
    # The shell between ends at once, so that its loop no longer descends from this process.
    theirs = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >/dev/null & echo $!', sys.executable, loop.replace("+ 1", "+ 20")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    stranger = int(theirs.stdout)
    try:
        ours.wait()
        named = " ".join(watch.use().processes)
    finally:
        os.kill(stranger, signal.SIGKILL)
    assert f"(pid {stranger})" in named
    assert f"(pid {ours.pid})" not in named


def test_programs_that_run_for_a_moment_are_counted_though_none_is_there_to_be_named() -> None:
    watch = quiet.Watch()
    many = '{ for i in $(seq 40); do "$0" -S -c "sum(range(10**6))"; done; } &'  # the shell ends, its loop stays
    subprocess.run(["sh", "-c", many, sys.executable], stdout=subprocess.PIPE, check=True)  # to the end of the loop
    assert watch.use().cores > quiet.OTHERS


def test_a_battery_and_a_varying_clock_are_warned_of(tmp_path: Path) -> None:
    assert quiet.warnings(tmp_path) == []
    for name, text in {
        "class/power_supply/BAT0/type": "Battery\n",
        "class/power_supply/BAT0/status": "Discharging\n",
        "devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "devices/system/cpu/cpufreq/boost": "1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    battery, governor, turbo = quiet.warnings(tmp_path)
    assert "battery (BAT0)" in battery and "governor powersave" in governor and "turbo" in turbo
    (tmp_path / "class/power_supply/BAT0/status").write_text("Full\n")
    assert len(quiet.warnings(tmp_path)) == 2


def test_a_hypervisor_that_takes_time_is_named() -> None:
    assert quiet.Use(0.01, 0.3).why_busy(2) == "the hypervisor gave 0.30 cores' time to other guests"
    assert quiet.Use(0.1, 0.05).why_busy(2) == ""
    assert quiet.Use(0.9, 0.0).why_busy(2) == "programs that run for a moment use 0.90 of a core in all"


def test_every_kernel_without_torch_measures_and_says_what_it_did() -> None:
    command = [sys.executable, "-m", "emulator.devices.kernels", "dgemm", "sgemm", "triad", "interpreter"]
    for options in (["--threads", "2"], ["--copies", "2"]):
        done = subprocess.run([*command, "--seconds", "0.01", *options], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        assert list(answer["kernels"]) == command[3:]
        assert all(Reading.from_json(one).rounds >= 3 for one in answer["kernels"].values())
        assert answer["left_out"] == {}


@pytest.mark.parametrize("arguments", [["nothing"], ["--threads", "0"], ["--threads", "x"], ["--seconds", "-1"]])
def test_the_kernels_program_refuses_what_it_does_not_know(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "emulator.devices.kernels", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_kernels_are_named_alone_or_by_kind() -> None:
    assert expand([]) == list(NAMES)
    assert expand(["triad", "conv"]) == ["conv_large", "conv_small", "conv_depthwise", "triad"]
    with pytest.raises(ValueError, match="there is no kernel 'con'"):
        expand(["con"])


def test_a_reading_counts_the_work_of_all_rounds() -> None:
    reading = measure(Work(lambda: None, 10.0, "op", "nothing"), 0.01)
    assert reading.unit == "op/s"
    assert reading.best >= reading.median > 0
    assert reading.best >= reading.mean >= 10 * reading.rounds / reading.seconds, "a loop takes time of its own"
    assert added([reading, reading]).mean == 2 * reading.mean


def test_cores_for_a_rate_grow_with_it_and_go_beyond_the_host() -> None:
    speed = Speed("FLOP/s", 40e9, 30e9, 54e9)
    needed = [speed.cpus(rate * 1e9, 2) for rate in (1, 20, 40, 41, 54, 108)]
    assert needed == sorted(needed)
    assert needed[1] == pytest.approx(0.5)
    assert needed[4:] == [pytest.approx(2.0), pytest.approx(4.0)]
    assert Speed.plain(10e9, 1).cpus(30e9, 1) == pytest.approx(3.0)
    busy = replace(speed, loaded=10e9, all=5e9, busy="somebody")
    assert busy.cpus(40e9, 2) == pytest.approx(1.0), "only the one core's figure holds on a busy host"
