"""Whether nodes can be made on this host: what is missing, with its remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from emulator.core.errors import HostError
from emulator.core.problem import Problem
from emulator.runtimes import cgroups
from emulator.runtimes.cgroups import Hierarchies

_NAMESPACES = {"net": "NET_NS", "pid": "PID_NS", "mnt": "NAMESPACES", "uts": "UTS_NS", "ipc": "IPC_NS"}


def problems() -> list[Problem]:
    """What keeps the embedded runtime from working here; empty = nothing that can be seen without trying."""
    if sys.platform != "linux":
        return [
            Problem("this is not Linux", "run emu in a Linux container or VM (macOS, Windows: Docker Desktop, WSL2)")
        ]
    if os.geteuid() != 0:
        return [Problem("nodes need root", "run emu with sudo, or use `--runtime fake`")]
    found = [
        Problem(f"the kernel has no {kind} namespaces", f"use a kernel with CONFIG_{option}")
        for kind, option in _NAMESPACES.items()
        if not Path(f"/proc/self/ns/{kind}").exists()
    ]
    return found + _overlay() + _controllers()


def _overlay() -> list[Problem]:
    if "\toverlay\n" in Path("/proc/filesystems").read_text() or Path("/sys/module/overlay").exists():
        return []
    # Mounting loads the module where there is one; whether there is one is seen from the module tree.
    if any(Path("/lib/modules", os.uname().release).glob("kernel/fs/overlayfs/overlay.ko*")):
        return []
    fix = "load it (modprobe overlay) or use a kernel with CONFIG_OVERLAY_FS"
    return [Problem("the kernel has no overlayfs", fix)]


def _controllers() -> list[Problem]:
    try:
        return missing_controllers(cgroups.detect())
    except HostError as error:
        return [Problem(error.what, error.fix)]


def missing_controllers(hierarchies: Hierarchies) -> list[Problem]:
    """The controllers that caps need and this host does not offer, and hierarchies that cannot be written."""
    missing = [name for name in cgroups.NEEDED if hierarchies.root(name) is None]
    found = []
    if missing:
        fix = (
            "mount them (mount -t cgroup -o NAME NAME /sys/fs/cgroup/NAME), "
            "or boot with cgroup_enable=memory systemd.unified_cgroup_hierarchy=1"
        )
        found.append(Problem(f"the cgroup controllers {', '.join(missing)} are missing", fix))
    locked = [str(root) for root in hierarchies.roots if not os.access(root, os.W_OK)]
    locked += [str(root) for root in hierarchies.roots if root not in map(Path, locked) and _is_read_only(root)]
    if locked:
        fix = "in a container run it with --privileged --cgroupns=host, or remount them (mount -o remount,rw)"
        found.append(Problem(f"the cgroups at {', '.join(locked)} cannot be written", fix))
    return found


def _is_read_only(root: Path) -> bool:
    return root.is_dir() and bool(os.statvfs(root).f_flag & os.ST_RDONLY)
