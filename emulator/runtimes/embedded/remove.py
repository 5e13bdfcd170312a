"""Removes a lab by its marks alone: its cgroups say which processes, its directories which mounts and files."""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.core.children import reap_ended
from emulator.core.clock import RealClock
from emulator.core.errors import RuntimeFailure
from emulator.core.lab_id import CGROUP_ROOT, NAME, state_root
from emulator.core.marks import CONTROL
from emulator.runtimes import cgroups, state

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId

_PATIENCE = 10.0


def find_labs() -> list[str]:
    """Names of all labs of which something of ours is left: state, cgroup, mount or files."""
    places = [state_root() / "labs", *(root / CGROUP_ROOT for root in cgroups.mounted_roots())]
    found = set()
    for place in places:
        if place.is_dir():
            found |= {entry.name for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)}
    return sorted(name for name in found if NAME.match(name))


def has_processes(lab: LabId) -> bool:
    """Whether anything runs in the lab's cgroups, whoever keeps its state."""
    groups = [root / lab.cgroup for root in cgroups.mounted_roots()]
    return any(cgroups.processes(below) for group in groups for below in cgroups.groups_below(group))


def is_of_root(lab: LabId) -> bool:
    """Whether root made it: its state or one of its cgroups is root's."""
    for place in (lab.directory, *(root / lab.cgroup for root in cgroups.mounted_roots())):
        try:
            if place.stat().st_uid == 0:
                return True
        except OSError:  # not there
            continue
    return False


def remove(lab: LabId) -> list[str]:
    """Remove all that this runtime made for the lab; returns what it was. Raises RuntimeFailure if some stays."""
    roots = [root for root in cgroups.mounted_roots() if (root / lab.cgroup).is_dir()]
    removed = [f"process {pid}" for pid in _kill([root / lab.cgroup for root in roots])]
    removed += _unmount(lab.directory)
    for root in roots:
        for group in cgroups.groups_below(root / lab.cgroup):
            if cgroups.remove_group(group):
                removed.append(f"cgroup {group}")
        _prune(root / CGROUP_ROOT)
    removed += _remove_files(lab)
    return removed


def _kill(groups: list[Path]) -> list[int]:
    """Kill everything in these cgroups; returns the pids.

    Nodes go before helpers, so that their keeper is still there to reap them; then everything, since a helper
    may have made something more in the meantime.
    """
    clock = RealClock()
    deadline = clock.now() + _PATIENCE
    killed: set[int] = set()
    for everything in (False, True):
        while True:
            members = [below for group in groups for below in cgroups.groups_below(group)]
            alive = _kill_once([group for group in members if everything or group.name != CONTROL], killed)
            if not alive:
                break
            if clock.now() > deadline:
                raise RuntimeFailure(
                    f"processes {', '.join(map(str, sorted(alive)))} do not end",
                    where=str(groups[0]),
                    fix="they hang in the kernel; end what they wait for, then run `emu down --all` again",
                )
    return sorted(killed)


def _kill_once(groups: list[Path], killed: set[int]) -> set[int]:
    """Send SIGKILL to every member once and wait for them a little; returns those seen alive."""
    seen = {pid for group in groups for pid in cgroups.processes(group)}
    handles: dict[int, int] = {}
    try:
        for pid in seen:
            try:
                handles[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
        # A pid may have been given to a stranger between reading and opening; whoever is still listed is ours.
        ours = {pid for group in groups for pid in cgroups.processes(group)} if handles else set()
        for pid, handle in handles.items():
            if pid in ours and pid != os.getpid():
                try:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    killed.add(pid)
                except ProcessLookupError:
                    continue
        _wait([handle for pid, handle in handles.items() if pid in ours], 1.0)
    finally:
        for handle in handles.values():
            os.close(handle)
    return seen - {os.getpid()}


def _wait(handles: list[int], seconds: float) -> None:
    """Wait until all these processes have ended, but no longer than that."""
    clock = RealClock()
    deadline = clock.now() + seconds
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    left = len(handles)
    while left and clock.now() < deadline:
        reap_ended()
        for handle, _ in poll.poll(20):
            poll.unregister(handle)
            left -= 1


def _unmount(place: Path) -> list[str]:
    """Unmount whatever lies under this directory, the last mounted first."""
    removed = []
    points = [_unescape(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if Path(point).is_relative_to(place):
            try:
                linux.umount(point)
                removed.append(f"mount {point}")
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOENT):  # unmounted by its parent's going
                    raise
    return removed


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _remove_files(lab: LabId) -> list[str]:
    """Remove the nodes' files and this runtime's state; the journal and the rest are the lab's own."""
    removed = []
    disk = state.disk(lab)
    for place in (lab.directory / "nodes", lab.directory / "fs", *([disk] if disk else [])):
        if place.is_dir():
            shutil.rmtree(place)
            removed.append(f"directory {place}")
    for name in (state.FILE, state.FILE + ".new", state.DISK, state.DISK + ".new"):
        (lab.directory / name).unlink(missing_ok=True)
    _prune(lab.directory)
    return removed


def _prune(place: Path) -> None:
    """rmdir this where it is empty."""
    try:
        place.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EBUSY, errno.EEXIST, errno.ENOTDIR):
            raise
