"""What a host shows of emu: counted before and after, to prove that nothing of ours is left."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.runtimes import cgroups

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId

CGROUPS = Path("/sys/fs/cgroup")
EMU = str(Path(sys.executable).with_name("emu"))


@dataclass(frozen=True)
class Traces:
    """Everything that a lab may leave; equal before and after."""

    namespaces: int
    interfaces: tuple[str, ...]
    mounts: tuple[str, ...]
    cgroups: tuple[str, ...]
    processes: tuple[str, ...]
    state: tuple[str, ...]


def traces() -> Traces:
    """Read all of it now."""
    return Traces(
        namespaces=len(_namespaces()),
        interfaces=tuple(sorted(os.listdir("/sys/class/net"))),
        mounts=tuple(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "/emu" in line),
        cgroups=tuple(sorted(str(path) for root in CGROUPS.iterdir() for path in _emu_groups(root))),
        processes=tuple(_marked_processes()),
        state=tuple(sorted(str(path) for root in ("/run/emu", "/var/lib/emu") for path in Path(root).glob("**/*"))),
    )


def _emu_groups(root: Path) -> list[Path]:
    found = [root] if root.name == "emu" else [root / "emu"]
    return [path for top in found if top.is_dir() for path in (top, *top.glob("**/")) if path.is_dir()]


def _namespaces() -> set[str]:
    """Network namespaces by inode, of all processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(os.readlink(entry / "ns" / "net"))
            except OSError:
                continue
    return found


def _marked_processes() -> list[str]:
    """Processes of labs, by cgroup or by environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            marked = "/emu/" in (entry / "cgroup").read_text() or b"EMU_LAB=" in (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if marked and state != "Z":
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
        except OSError:
            continue
    return sorted(found)


def marked(lab: LabId) -> list[str]:
    """Everything on this host that carries the lab's name: processes, cgroups, mounts, files."""
    found = [str(root / lab.cgroup) for root in cgroups.mounted_roots() if (root / lab.cgroup).exists()]
    found += [f"process {pid}" for pid in members(lab)]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if lab.name in line]
    found += [str(path) for path in lab.directory.glob("**/*")] if lab.directory.exists() else []
    return found


def members(lab: LabId) -> list[int]:
    """Pids of the lab by its cgroups, however /proc lists them."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"/{lab.cgroup}/" in (entry / "cgroup").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def emu(*argv: str, timeout: float = 120, check: bool = True, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [EMU, *argv],
        capture_output=True,
        text=True,
        timeout=timeout,
        **kwargs,  # type: ignore[call-overload]
    )
    if check and done.returncode:
        raise AssertionError(f"emu {' '.join(argv)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done
