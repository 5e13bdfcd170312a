"""Measuring a board: what is read, what is left out, and that the profile written can be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import DeviceError, HostError, UsageError
from emulator.core.plan import PowerPlan
from emulator.devices import machine, measure, storage
from emulator.devices.power import power, watts
from emulator.devices.profile import profile


def reading(best: float) -> dict[str, Any]:
    return {"unit": "x/s", "size": "n=1", "best": best, "median": best * 0.9, "mean": best, "rounds": 3, "seconds": 1.0}


def program(*options: str) -> dict[str, Any]:
    factor = 4.0 if "--threads" in options else 1.0
    return {
        "kernels": {
            "dgemm": reading(2e9 * factor),
            "sgemm": reading(4e9 * factor),
            "triad": reading(3e9),
            "sevenzip": reading(1600 * factor * 0.9 if factor > 1 else 1600),
        },
        "left_out": {"conv_large": "torch is not installed"},
        "versions": {"numpy": "2.0", "torch": None},
    }


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Pi's files under a root, and a kernels' program that answers at once."""
    root = tmp_path / "root"
    cpu = root / "sys/devices/system/cpu/cpu0"
    files = {
        root / "proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
        root / "proc/meminfo": "MemTotal:        3884248 kB\n",
        root / "proc/net/route": "Iface\tDestination\tGateway\neth0\t00000000\t0101A8C0\n",
        root / "sys/class/net/eth0/speed": "1000\n",
        cpu / "cpufreq/cpuinfo_max_freq": "1500000\n",
        cpu / "cache/index0/level": "1", cpu / "cache/index0/type": "Data", cpu / "cache/index0/size": "32K",
        cpu / "cache/index2/level": "2", cpu / "cache/index2/type": "Unified", cpu / "cache/index2/size": "1024K",
    }  # fmt: skip
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("model", "figures", "interface"):
        real = getattr(machine, name)
        monkeypatch.setattr(machine, name, lambda real=real: real(root))
    rate = machine.line_rate
    monkeypatch.setattr(machine, "line_rate", lambda name: rate(name, root))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(measure, "_program", program)
    monkeypatch.setattr(storage, "SIZE", 4 << 20)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "devices"
    folder.mkdir()
    monkeypatch.setenv("EMU_DEVICES", str(folder))
    return folder


def test_a_board_becomes_a_device_that_a_topology_can_name(
    board: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "ruamel.yaml", None)  # a board need not have it
        measure.run(board / "my-pi.yaml", seconds=0.05)
    device = profile("my-pi")
    value = {key: figure.value for key, figure in device.figures.items()}
    assert device.title == "Raspberry Pi 4 Model B Rev 1.4"
    assert (value["cores"], value["clock"], value["l1d"], value["l2"]) == (4, 1.5e9, 32 << 10, 1 << 20)
    assert (value["hpl"], value["sgemm"], value["stream_triad"], value["nic"]) == (8e9, 16e9, 3e9, 1e9)
    assert (value["sevenzip_one"], value["sevenzip_all"]) == (1600, 5760)
    assert [device.figures[f"sevenzip_{name}"].conditions["threads"] for name in ("one", "all")] == ["1", "4"]
    assert device.figures["hpl"].derived.startswith("emu's DGEMM")
    assert device.figures["hpl"].conditions["threads"] == "4"
    assert value["memory"] == pytest.approx(3884248 * 1024, rel=1e-4)
    carried = json.loads((board / "my-pi.json").read_text())
    assert carried["readings"]["one_core"]["kernels"]["dgemm"]["best"] == 2e9
    assert carried["left_out"]["conv_large"] == "torch is not installed"
    assert "idle" not in value
    assert "left out: idle (needs a power meter)" in capsys.readouterr().err
    assert sorted(path.name for path in board.iterdir()) == ["my-pi.json", "my-pi.yaml"], "no measuring file stays"


def test_a_port_that_tells_no_rate_and_a_folder_that_cannot_be_written_are_left_out(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "line_rate", lambda _name: None)

    def no_direct(*_: object) -> dict[str, float]:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(storage, "measure", no_direct)
    measure.run(board / "my-pi.yaml", seconds=0.05)
    device = profile("my-pi")
    assert device.figure("nic") is None
    assert device.figure("storage_read") is None
    left = json.loads((board / "my-pi.json").read_text())["left_out"]
    assert "eth0 does not tell its rate" in left["nic"]
    assert left["storage_read"].endswith("its file system knows no O_DIRECT")


def test_figures_that_contradict_keep_the_readings_and_write_no_profile(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program()
    found["kernels"]["dgemm"] = reading(1e15)
    monkeypatch.setattr(measure, "_program", lambda *_: found)
    with pytest.raises(DeviceError, match="more than 4 cores"):
        measure.run(board / "my-pi.yaml", seconds=0.05)
    assert [path.name for path in board.iterdir()] == ["my-pi.json"]


def test_the_program_of_a_board_imports_nothing_but_pythons_own_and_numpy() -> None:
    code = "import sys, emulator.devices.measure; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"ruamel", "pydantic", "typer", "rich", "torch", "jinja2", "msgpack", "zmq"} & set(loaded)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("my-pi.yml", "end it with .yaml"),
        ("My Pi.yaml", "is no profile's name"),
        ("rpi-4.yaml", "ships with emu"),
        ("nowhere/my-pi.yaml", "there is no folder"),
        ("there.yaml", "is there already"),
    ],
)
def test_a_name_that_will_not_do_is_told_before_anything_is_measured(board: Path, out: str, said: str) -> None:
    (board / "there.yaml").write_text("mine")
    with pytest.raises(UsageError, match=said):
        measure.run(board / out)
    assert (board / "there.yaml").read_text() == "mine"


def test_a_machine_whose_kernels_do_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named numpy' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(HostError, match=r"cannot be measured \(No module named numpy\)"):
        measure.run(tmp_path / "my-pi.yaml")
    assert not list(tmp_path.glob("my-pi*"))


def test_power_is_a_straight_line_from_idle_to_all_cores_busy() -> None:
    line = power(profile("rpi-4"))
    assert line == PowerPlan(3.1, 6.1, 4)
    assert [watts(line, cores) for cores in (0, 2, 4, 9)] == pytest.approx([3.1, 4.6, 6.1, 6.1])
    assert power(profile("rpi-5")) is None, "its idle watts are not known"
