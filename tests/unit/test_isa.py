"""What `emu isa-check` reads and says: wheels' names, ELF headers, packages' files, findings."""

from __future__ import annotations

import io
import os
import signal
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from emulator.core.errors import HostError, UsageError
from emulator.isa import check, elf, inside, packages, target, wheel
from emulator.isa.finding import Finding, verdict
from emulator.runtimes import binfmt


@pytest.mark.parametrize(
    ("tags", "python", "fits"),
    [
        ("cp311-cp311-manylinux_2_28_aarch64", "3.11", True),
        ("cp312-cp312-manylinux_2_28_aarch64", "3.11", False),
        ("cp38-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64", "3.11", True),
        ("cp312-abi3-linux_aarch64", "3.11", False),
        ("py2.py3-none-any", "3.11", True),
        ("py311-none-any", "3.12", False),
    ],
)
def test_a_wheels_name_tells_which_python_takes_it(tmp_path: Path, tags: str, python: str, fits: bool) -> None:
    assert wheel.read(tmp_path / f"some_name-1.0-{tags}.whl").for_python(python) is fits


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl", "is for manylinux_2_28_x86_64.*pip download .*==2.9.1"),
        ("torch-2.9.1-cp311-none-macosx_11_0_arm64.whl", "is for macosx_11_0_arm64, and the devices are ARM64 Linux"),
        ("torch.whl", "torch.whl is no wheel's name"),
    ],
)  # fmt: skip
def test_wheels_that_no_device_takes_are_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        wheel.read(tmp_path / name)


@pytest.mark.parametrize("cut", [40, 5000])
def test_a_program_that_was_cut_off_or_is_no_file_is_not_tried(tmp_path: Path, cut: int) -> None:
    whole = struct.pack("<4s5B7x HHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 2, 183, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    whole += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 9000, 9000, 0)
    path = tmp_path / "program"
    path.write_bytes(whole.ljust(9000, b"\0"))
    assert elf.read(path) == elf.Elf("arm64", library=False)
    path.write_bytes(path.read_bytes()[:cut])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no wheel and no whole ELF program"):
        check.read([str(path)], None)
    with pytest.raises(UsageError, match="is no regular file"):
        check.read([str(tmp_path / "pipe")], None)


def packed(path: Path) -> list[str]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        wheel.read(path).pack(archive, "site")
    out.seek(0)
    return tarfile.open(fileobj=out).getnames()


def test_a_wheel_is_unpacked_as_an_installer_would_and_not_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a-1-py3-none-any.whl"
    names = [
        "a/__init__.py",
        "a-1.data/purelib/b.py",
        "a-1.data/scripts/run",
        "../c.py",
        "/d.py",
        "a-1.dist-info/RECORD",
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, name * 100)
    assert packed(path) == ["site/a/__init__.py", "site/b.py", "site/a-1.dist-info/RECORD"]
    whole = path.read_bytes()
    for broken in (whole[:-30], b"", whole[:40] + b"\xff" + whole[41:]):
        path.write_bytes(broken)
        with pytest.raises(UsageError, match="the wheel is damaged; fetch it again"):
            packed(path)


def test_elf_files_are_told_apart(tmp_path: Path) -> None:
    static = tmp_path / "static"
    static.write_bytes(binfmt.program("arm64"))
    assert elf.read(static) == elf.Elf("arm64", library=False)
    shared = tmp_path / "lib.so.1"
    shared.write_bytes(static.read_bytes()[:16] + struct.pack("<H", 3) + static.read_bytes()[18:])
    assert elf.read(shared) == elf.Elf("arm64", library=True)
    (tmp_path / "short").write_bytes(b"\x7fELF")
    (tmp_path / "cut").write_bytes(static.read_bytes()[:80])
    (tmp_path / "far").write_bytes(static.read_bytes()[:32] + b"\xff" * 8 + static.read_bytes()[40:])
    (tmp_path / "text").write_text("#!/bin/sh\n")
    assert [elf.read(tmp_path / name) for name in ("short", "cut", "far", "text")] == [None] * 4


def test_what_is_named_is_told_apart(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(binfmt.program("arm64"))
    request = check.read(["emu/torch", "emu/base:arm64", "alpine:3", str(program)], None)
    assert request.images == ["emu/torch:arm64", "emu/base:arm64", "alpine:3"]
    assert [path for path, _ in request.programs] == [program]
    program.write_bytes(binfmt.program("amd64"))
    for subject, base, said in [
        (str(program), None, "is for amd64, and the device runs arm64; compile it"),
        ("./none", None, "there is no file ./none"),
        ("none.whl", None, "there is no file none.whl"),
        (str(tmp_path), None, "is a directory"),
        ("alpine", "emu/base:arm64", "--image has no effect on images"),
    ]:
        with pytest.raises(UsageError, match=said):
            check.read([subject], base)


def test_devices_and_hosts_that_cannot_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--device: there is no device 'rpi4'; did you mean 'rpi-4'"):
        target.of_device("rpi4")
    with pytest.raises(UsageError, match="a laptop has no processor core of its own; use one of cm4, "):
        target.of_device("laptop")
    pi = target.of_device("rpi-4")
    monkeypatch.setattr(target, "host_arch", lambda: "arm64")
    monkeypatch.setattr(target.cores, "of_host", lambda: ("neoverse-n1",))
    with pytest.raises(HostError, match=r"on this host's own core \(neoverse-n1\), which is not cortex-a72"):
        target.in_containers(pi)
    monkeypatch.setattr(target.cores, "of_host", lambda: ("cortex-a72",))
    assert (target.in_containers(pi), target.for_programs(pi), pi.environment) == ("this host", ([], "this host"), {})


def test_modules_and_compiled_modules_of_a_packages_files() -> None:
    suffix = inside.EXTENSION_SUFFIXES[0]
    files = [
        "pkg/__init__.py", "pkg/sub/__init__.py", f"pkg/sub/_fast{suffix}", "name/space/__init__.py", "one.py",
        f"_two{suffix}", "pkg.libs/libx.so", "pkg-1.dist-info/RECORD", "../../bin/run", "pkg/not-a-name.py",
    ]  # fmt: skip
    assert inside.modules(files) == ["_two", "name.space", "one", "pkg"]
    assert inside.extensions(files) == ["_two", "pkg.sub._fast"]


def test_who_is_blamed_is_the_innermost_package() -> None:
    said = (
        'Fatal Python error: Illegal instruction\n\nCurrent thread 0x1 (most recent call first):\n'
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 376 in __init__\n'
        '  File "/site/fast/core.py", line 7 in <module>\n  File "/site/user.py", line 1 in <module>\n'
    )  # fmt: skip
    owners = {"/site/fast/core.py": "fast", "/site/user.py": "user"}
    assert inside.blamed(said, lambda file: owners.get(file, "")) == ("fast/core.py:7", "fast")
    assert inside.blamed("", lambda file: "any") == ("", "")


def test_each_subject_has_a_process_whose_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "emu_isa_dies": "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
        "emu_isa_stays": "import time; time.sleep(60)",
        "emu_isa_leaves": "import os; os._exit(3)",
        "emu_isa_lacks": "import emu_isa_nowhere",
        "emu_isa_good": "print('x' * 100000)",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        (info / "RECORD").write_text(f"{name}.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(inside, "say", told.append)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        inside.main({"below": [str(tmp_path)], "libraries": ["/nowhere.so"], "parallel": 3, "seconds": 1.5})
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert told.pop(0)["subjects"] == 6
    found = {item["name"]: packages.finding(item, "image", False) for item in told}
    assert {name: one.outcome for name, one in found.items()} == {
        "emu_isa_dies": "dies", "emu_isa_stays": "late", "emu_isa_leaves": "unknown", "emu_isa_lacks": "unknown",
        "emu_isa_good": "ok", "nowhere.so": "unknown",
    }  # fmt: skip
    assert (found["emu_isa_dies"].signal, found["emu_isa_dies"].owner) == ("SIGILL", "emu_isa_dies")
    assert "No module named 'emu_isa_nowhere'" in found["emu_isa_lacks"].detail
    assert "exit status 3 at: import emu_isa_leaves" in found["emu_isa_leaves"].detail


def test_the_verdict_names_who_dies_once_and_the_remedy() -> None:
    def one(name: str, outcome: Any = "ok", **more: Any) -> Finding:
        return Finding("image", name, outcome, "1", **more)

    good, lacking = one("good"), one("lacking", "unknown")
    bad = one("bad", "dies", signal="SIGILL", owner="bad")
    user = one("user", "dies", signal="SIGILL", owner="bad")
    assert verdict([good, bad, user], "a72 (pi)", "a72") == (
        "bad 1 dies with SIGILL on a72 (pi): take another version, or build for that core (-mcpu=a72)"
    )
    assert (
        verdict([good, lacking], "a72 (pi)", "a72") == "nothing dies on a72 (pi) of 1 checked; not checked: lacking 1"
    )
    assert "is no unknown instruction by itself" in verdict([one("x", "dies", signal="SIGSEGV")], "a72", "a72")
    assert "did not end in time" in verdict([one("slow", "late")], "a72", "a72")
    assert [item.bad for item in (good, lacking, bad, one("asked", "unknown", given=True))] == [
        False,
        False,
        True,
        True,
    ]
