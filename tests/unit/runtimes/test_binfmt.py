"""What the kernel's binfmt_misc says about programs for ARM64, on directories like its own, and what QEMU answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.errors import HostError
from emulator.core.plan import NodePlan
from emulator.runtimes import binfmt
from emulator.runtimes.docker import runtime

MAGIC = "magic 7f454c460201010000000000000000000200b700\nmask ffffffffffffff00fffffffffffffffffeffffff\n"
ARM32 = "magic 7f454c4601010100000000000000000002002800\nmask ffffffffffffff00fffffffffffffffffeffffff\n"
KNOWN = "Available CPUs:\n  cortex-a53\n  cortex-a72\n  max\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mounted binfmt_misc without entries, on a host of another processor."""
    monkeypatch.setattr(binfmt, "host_arch", lambda: "amd64")
    (tmp_path / "status").write_text("enabled\n")
    (tmp_path / "register").write_text("")
    return tmp_path


def register(
    directory: Path, name: str = "qemu-aarch64", *, state: str = "enabled", flags: str = "PF", magic: str = MAGIC
) -> Path:
    path = directory / name
    path.write_text(f"{state}\ninterpreter /nowhere/qemu\nflags: {flags}\noffset 0\n{magic}")
    return path


def qemu(environment: dict[str, str]) -> tuple[int, str]:
    """An older QEMU, as it answers."""
    if "QEMU_VERSION" in environment:
        return 0, "qemu-aarch64 version 5.2.0 (Debian 1:5.2+dfsg-11)\nCopyright (c) 2003-2020"
    core = environment.get("QEMU_CPU", "max")
    if core == "help":
        return 1, KNOWN
    return (0, "") if core in KNOWN.split() else (1, f"unable to find CPU model '{core}'")


def sentence(directory: Path, ask: binfmt.Ask = qemu) -> str:
    found = binfmt.problems("arm64", directory, ask)
    assert len(found) == 1
    return str(found[0])


def test_a_good_entry_needs_nothing(directory: Path) -> None:
    register(directory)
    assert binfmt.problems("arm64", directory, qemu) == []


def test_not_mounted(directory: Path) -> None:
    (directory / "status").unlink()
    assert sentence(directory) == f"binfmt_misc is not mounted; mount -t binfmt_misc binfmt_misc {directory}"
    assert "; modprobe binfmt_misc && mount" in sentence(directory / "none")


def test_switched_off_as_a_whole_or_the_entry(directory: Path) -> None:
    path = register(directory, state="disabled")
    assert sentence(directory) == f"the binfmt entry qemu-aarch64 is switched off; echo 1 > {path}"
    (directory / "status").write_text("disabled\n")
    assert sentence(directory) == f"binfmt_misc is switched off; echo 1 > {directory}/status"


def test_no_entry_for_this_processor(directory: Path) -> None:
    register(directory, "qemu-arm", magic=ARM32)
    register(directory, "by-name", magic="extension .a64\n")
    (directory / "damaged").write_text("enabled\nmagic 7f4\n")
    assert sentence(directory).startswith("no interpreter of programs for arm64 is registered with the kernel; ")


def test_the_entry_is_found_under_any_name_and_an_enabled_one_first(directory: Path) -> None:
    register(directory, "a-disabled-one", state="disabled")
    register(directory, "multiarch", flags="OCF")
    found = binfmt.entry("arm64", directory)
    assert found is not None and (found.path.name, found.flags, found.fixed) == ("multiarch", "OCF", True)


def test_without_the_flag_f_containers_lack_the_interpreter(directory: Path) -> None:
    path = register(directory, flags="P")
    assert sentence(directory).startswith(
        "the binfmt entry qemu-aarch64 lacks the flag F, so containers lack /nowhere/qemu (nor is it on this host); "
        f"echo -1 > {path} && "
    )


def test_an_entry_whose_interpreter_does_not_run(directory: Path) -> None:
    register(directory)
    found = sentence(directory, lambda _environment: (126, "No such file or directory"))
    assert "does not run by the binfmt entry qemu-aarch64 (No such file or directory); echo -1 > " in found
    assert found.endswith("apt install --reinstall qemu-user-static binfmt-support")


def test_a_core_that_qemu_does_not_know_is_named_with_those_that_it_knows(directory: Path) -> None:
    assert binfmt.core_problem("arm64", "cortex-a72", qemu) is None
    assert str(binfmt.core_problem("arm64", "cortex-a76", qemu)) == (
        "QEMU 5.2.0 does not know the core 'cortex-a76'; install a newer qemu-user-static, "
        "or take a device with one of cortex-a53, cortex-a72, max"
    )


def test_an_arm64_host_needs_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binfmt, "host_arch", lambda: "arm64")
    assert binfmt.problems("arm64", directory) == []
    assert binfmt.core_problem("arm64", "cortex-a72") is None


def test_a_node_is_refused_by_name_before_anything_is_made(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(directory)
    monkeypatch.setattr(runtime, "host_arch", lambda: "amd64")
    monkeypatch.setattr(binfmt, "DIRECTORY", directory)
    monkeypatch.setattr(binfmt, "asking", lambda _arch: qemu)
    old = NodePlan("old", arch="arm64", cpu_model="cortex-a72")
    new = NodePlan("new", arch="arm64", cpu_model="cortex-a76")
    runtime._require_processors([NodePlan("lan", "switch"), old])
    with pytest.raises(HostError, match=r"^new: QEMU 5.2.0 does not know the core 'cortex-a76'; install a newer"):
        runtime._require_processors([old, new])
    runtime._require_processors(
        [NodePlan("own", arch="arm64", cpu_model="cortex-a76", env=(("QEMU_CPU", "cortex-a53"),))]
    )


@pytest.mark.needs("qemu-aarch64")
def test_this_host_runs_arm64_programs_as_the_devices_cores() -> None:
    assert binfmt.problems("arm64") == []
    assert binfmt.version("arm64").startswith("QEMU ")
    assert {"cortex-a53", "cortex-a72", "cortex-a76"} <= {*binfmt.cores("arm64")}
    assert binfmt.core_problem("arm64", "cortex-a72") is None
    assert "does not know the core 'cortex-b72'" in str(binfmt.core_problem("arm64", "cortex-b72"))
