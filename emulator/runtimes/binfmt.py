"""Whether this host runs programs of another processor: what the kernel's binfmt_misc says, and what QEMU answers.

Entries are found as the kernel finds them, by a program's first bytes, for distributions name them differently.
QEMU itself is asked through the kernel, by running a program of a few bytes: so it is the one that nodes will get.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.core.errors import HostError
from emulator.core.problem import Problem
from emulator.core.processor import host_arch

DIRECTORY = Path("/proc/sys/fs/binfmt_misc")
#: per processor: what an ELF header calls it, QEMU's name of it, and the machine code of exit(0)
_MACHINES = {
    "arm64": (183, "aarch64", "000080d2a80b80d2010000d4"),
    "amd64": (62, "x86_64", "31ffb83c0000000f05"),
}
_BASE = 0x400000
#: QEMU's answer: exit status, and what it said. The environment is added to a nearly empty one.
Answer = tuple[int, str]
Ask = Callable[[dict[str, str]], Answer]


@dataclass(frozen=True)
class Entry:
    """One registration. `fixed` (flag F): the interpreter was opened when it was registered, so containers, which do
    not hold it, have it too."""

    path: Path
    enabled: bool
    interpreter: str
    flags: str

    @property
    def fixed(self) -> bool:
        return "F" in self.flags


def supported() -> tuple[str, ...]:
    """The processors that a host can be asked about."""
    return tuple(_MACHINES)


def program(arch: str) -> bytes:
    """The smallest ELF program for a processor: it ends with exit status 0."""
    machine, _, text = _MACHINES[arch]
    code = bytes.fromhex(text)
    size = 64 + 56 + len(code)
    header = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)
    header += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _BASE + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000) + code


def entry(arch: str, directory: Path | None = None) -> Entry | None:
    """The registration that matches programs for `arch`, an enabled one first; None = there is none."""
    found = [one for path in _entries(directory or DIRECTORY) if (one := _read(path, program(arch))) is not None]
    return min(found, key=lambda one: (not one.enabled, one.path.name), default=None)


def problems(arch: str, directory: Path | None = None, ask: Ask | None = None) -> list[Problem]:
    """What keeps containers for `arch` from running here; empty = they run, by themselves or by QEMU (tried)."""
    directory = directory or DIRECTORY
    if arch == host_arch():
        return []
    if arch not in _MACHINES:
        return [Problem(f"emu knows no way to run programs for {arch}", f"use one of {', '.join(_MACHINES)}")]
    if not (directory / "status").exists():
        mount = f"mount -t binfmt_misc binfmt_misc {directory}"
        return [
            Problem("binfmt_misc is not mounted", mount if directory.is_dir() else f"modprobe binfmt_misc && {mount}")
        ]
    if (directory / "status").read_text().strip() != "enabled":
        return [Problem("binfmt_misc is switched off", f"echo 1 > {directory}/status")]
    found = entry(arch, directory)
    if found is None:
        return [Problem(f"no interpreter of programs for {arch} is registered with the kernel", _register(arch))]
    if not found.enabled:
        return [Problem(f"the binfmt entry {found.path.name} is switched off", f"echo 1 > {found.path}")]
    if not found.fixed:
        there = "" if Path(found.interpreter).exists() else " (nor is it on this host)"
        fact = f"the binfmt entry {found.path.name} lacks the flag F, so containers lack {found.interpreter}{there}"
        return [Problem(fact, f"echo -1 > {found.path} && {_register(arch)}")]
    status, said = (ask or asking(arch))({})
    if status != 0:
        fact = f"a program for {arch} does not run by the binfmt entry {found.path.name} ({said or f'exit {status}'})"
        return [Problem(fact, f"echo -1 > {found.path} && {_register(arch, again=True)}")]
    return []


def core_problem(arch: str, core: str, ask: Ask | None = None) -> Problem | None:
    """Why QEMU cannot be this core (QEMU_CPU's value); None = it can (tried), or is not needed here."""
    if arch == host_arch() or not core:
        return None
    ask = ask or asking(arch)
    status, _ = ask({"QEMU_CPU": core})
    if status == 0:
        return None
    fix = f"install a newer qemu-user-static, or take a device with one of {', '.join(cores(arch, ask)) or 'its cores'}"
    return Problem(f"{version(arch, ask)} does not know the core {core!r}", fix)


def require(arch: str, cores_by_user: Sequence[tuple[str, str]] = ()) -> None:
    """Raises HostError where containers for `arch` do not run here, or QEMU lacks one of the cores.

    The cores come with who wants them, for the sentence.
    """
    for problem in problems(arch):
        raise HostError(f"programs for {arch} do not run here: {problem.fact}", fix=problem.fix)
    tried: set[str] = set()
    for user, core in cores_by_user:
        if core in tried:
            continue
        tried.add(core)
        if unknown := core_problem(arch, core):
            raise HostError(unknown.fact, where=user, fix=unknown.fix)


def version(arch: str, ask: Ask | None = None) -> str:
    """What interprets programs for `arch` here: "QEMU 7.2.22"."""
    _, said = (ask or asking(arch))({"QEMU_VERSION": "1"})
    words = said.split()
    return f"QEMU {words[2]}" if words[1:2] == ["version"] and len(words) > 2 else "the interpreter"


def cores(arch: str, ask: Ask | None = None) -> list[str]:
    """The processor cores that QEMU says it can be; empty where it does not say."""
    _, said = (ask or asking(arch))({"QEMU_CPU": "help"})
    return [words[0] for line in said.splitlines() if len(words := line.split()) == 1]


def asking(arch: str, interpreter: str = "") -> Ask:
    """Runs `program(arch)` by the kernel, or an interpreter, with an environment; what QEMU then says is the answer."""

    words = [interpreter] if interpreter else []

    def ask(environment: dict[str, str]) -> Answer:
        # In memory: /tmp may forbid programs.
        file = os.memfd_create("emu-binfmt", 0)
        try:
            os.write(file, program(arch))
            # A second descriptor, for reading only: a file open for writing is no program (ETXTBSY).
            readable = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
        finally:
            os.close(file)
        try:
            done = subprocess.run(
                [*words, f"/proc/self/fd/{readable}"], pass_fds=[readable],
                env={"PATH": os.defpath, **environment},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False,
            )  # fmt: skip
        except OSError as error:
            return 126, error.strerror or str(error)
        except subprocess.TimeoutExpired:
            return 124, "no end within 20 s"
        finally:
            os.close(readable)
        return done.returncode, done.stdout.decode(errors="replace").strip()

    return ask


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.name not in ("register", "status"))
    except OSError:
        return []


def _read(path: Path, start: bytes) -> Entry | None:
    """The entry of that file where it matches a program that starts so; None also where it goes by file name."""
    try:
        lines = path.read_text().splitlines()
        said = dict(line.partition(" ")[::2] for line in lines[1:])
        magic = bytes.fromhex(said["magic"])
        mask = bytes.fromhex(said["mask"]) if "mask" in said else b"\xff" * len(magic)
        part = start[int(said["offset"]) :][: len(magic)]
    except (OSError, KeyError, ValueError):
        return None
    if len(part) < len(magic) or any((a ^ b) & m for a, b, m in zip(part, magic, mask, strict=False)):
        return None
    return Entry(path, lines[0] == "enabled", said.get("interpreter", ""), said.get("flags:", ""))


def _register(arch: str, *, again: bool = False) -> str:
    """The command that registers QEMU for `arch` with the flag F, by what this system has for that."""
    name = f"qemu-{_MACHINES[arch][1]}"
    if not again and shutil.which("update-binfmts") and Path("/usr/share/binfmts", name).exists():
        return f"update-binfmts --enable {name}"
    return f"apt install {'--reinstall ' if again else ''}qemu-user-static binfmt-support"
