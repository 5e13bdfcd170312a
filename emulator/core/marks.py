"""Joining a lab's control group, by which helper processes of a lab (relay, supervisors, zygote) are found again.

The group is `emu/<lab>/.control` in the pids hierarchy (cgroup v1), or in the unified one. It limits nothing, and
lies outside the cpu hierarchy of cgroup v1, where the kernel refuses SCHED_FIFO to all but the root group.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import HostError

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId

CONTROL = ".control"
_V1 = Path("/sys/fs/cgroup/pids")
_UNIFIED = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


def mark_root() -> Path:
    """The mount of the hierarchy that marks processes; raises HostError where there is none."""
    if (_V1 / "cgroup.procs").exists():
        return _V1
    for root in _UNIFIED:
        if (root / "cgroup.controllers").exists():
            return root
    raise HostError(
        "no pids or unified cgroup hierarchy is mounted under /sys/fs/cgroup",
        fix="mount one (mount -t cgroup2 none /sys/fs/cgroup)",
    )


def control_group(lab: LabId) -> Path:
    """The directory of the lab's control group, whether it exists or not."""
    return mark_root() / lab.cgroup / CONTROL


def join_control_group(lab: LabId) -> None:
    """Put the calling process into the lab's control group, made if it is missing; raises HostError."""
    group = control_group(lab)
    try:
        group.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(group / "cgroup.procs", os.O_WRONLY)
        try:
            os.write(descriptor, str(os.getpid()).encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise HostError(
            f"the control group of lab {lab.name} cannot be joined ({error.strerror})",
            where=str(group),
            fix="run as root on a host whose cgroups are writable",
        ) from None
