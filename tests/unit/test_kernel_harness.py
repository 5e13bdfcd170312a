"""The harness of `make test-kernel`, with programs in place of the VM."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emulator.core.errors import HostError
from tests.kernel import __main__ as harness
from tests.kernel import image

IMAGE = Path("vmlinuz-test")


def stand_in(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(harness, "_vng", lambda *_: ["sh", "-c", script])


@pytest.mark.parametrize("code", [0, 3])
def test_the_commands_exit_code_comes_back_and_its_output_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    stand_in(monkeypatch, f"echo inside; echo emu-kernel-exit {code}; exit 7")
    assert harness.boot(IMAGE, ["x"], 60) == code
    shown = capsys.readouterr().out
    assert "inside" in shown
    assert "emu-kernel-exit" not in shown


def test_a_vm_that_dies_first_is_not_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "echo Kernel panic")
    with pytest.raises(HostError, match=r"the VM ended \(0\) before its command did; read what it printed"):
        harness.boot(IMAGE, ["x"], 60)


def test_a_hang_is_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(monkeypatch, "echo started; sleep 60")
    assert harness.boot(IMAGE, ["x"], 0.5) == harness.TIMED_OUT
    assert "the VM was ended after 0 s" in capsys.readouterr().out


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: "/bin/vng" if name == "vng" else None)
    with pytest.raises(HostError, match=r"qemu-system-x86_64 is not installed; .*apt-get install qemu-system-x86`"):
        harness._vng(IMAGE, ["x"])


def test_no_kernel_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EMU_KERNEL_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(HostError, match=r"there is no linux-image-amd64 to boot .* unpack a linux-image package"):
        image.kernel()


def test_a_kernel_that_is_there_serves_where_apt_knows_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EMU_KERNEL_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    kept = tmp_path / "linux-image-6.1.0-9-amd64" / "boot" / "vmlinuz-6.1.0-9-amd64"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert image.kernel() == kept


def test_a_failed_download_leaves_no_half_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EMU_KERNEL_DIR", str(tmp_path))
    monkeypatch.setattr(image, "_newest", lambda: "linux-image-none")
    script = tmp_path / "apt-get"
    script.write_text("#!/bin/sh\necho no route to host >&2\nexit 100\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(HostError, match=r"`apt-get download .*` failed \(no route to host\); run `apt-get update`"):
        image.kernel()
    assert not (tmp_path / "linux-image-none").exists()
