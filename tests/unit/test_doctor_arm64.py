"""What `emu doctor` says of ARM64 nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.core import processor
from emulator.core.problem import Problem
from emulator.devices import cores
from emulator.lab import doctor
from emulator.runtimes import binfmt

Host = Callable[..., doctor.Check]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Host:
    """The check on a host of that processor, with these cores of its own, or QEMU that knows these."""

    def check(arch: str, known: list[str], problem: Problem | None = None) -> doctor.Check:
        monkeypatch.setattr(processor, "host_arch", lambda: arch)
        monkeypatch.setattr(cores, "of_host", lambda: tuple(known) if arch == "arm64" else ())
        monkeypatch.setattr(binfmt, "problems", lambda _arch: [problem] if problem else [])
        monkeypatch.setattr(binfmt, "entry", lambda _arch: None)
        monkeypatch.setattr(binfmt, "version", lambda _arch: "QEMU 5.2.0")
        monkeypatch.setattr(binfmt, "cores", lambda _arch: known)
        return doctor._arm64()

    return check


ALL = ["cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76"]


def test_by_qemu(on: Host) -> None:
    good = on("amd64", ALL)
    assert (good.state, good.fact) == ("ok", f"run by QEMU 5.2.0, as {', '.join(ALL)}")
    old = on("amd64", ALL[:3])
    assert (old.state, old.fact) == ("note", "run by QEMU 5.2.0, without cortex-a76 (rpi-5)")
    assert old.fix == "install a newer qemu-user-static"
    none = on("amd64", [], Problem("binfmt_misc is not mounted", "mount it"))
    assert (none.state, none.fact, none.fix) == ("note", "do not run: binfmt_misc is not mounted", "mount it")


def test_on_an_arm64_host_its_own_core_counts(on: Host) -> None:
    pi = on("arm64", ["cortex-a72"])
    assert (pi.state, pi.fact) == ("ok", "run natively, on cortex-a72: the core of cm4, rpi-4")
    cloud = on("arm64", ["neoverse-n1"])
    assert cloud.state == "note" and cloud.fact.startswith("run natively, on neoverse-n1: no device's core, so ")
