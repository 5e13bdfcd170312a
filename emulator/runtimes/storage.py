"""Whether a node's storage can be held to its card's speed, and what to write for it; the one place that decides.

The kernel's disk controller (blkio on version 1, io on version 2) counts requests to whole disks. So it caps what
reaches a disk of this host, and nothing else: not files in memory, not what the page cache answers, and on version 1
not what the kernel writes back by itself later (`fsync`, O_SYNC and O_DIRECT do count).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.runtimes import cgroups

if TYPE_CHECKING:
    from emulator.core.plan import NodePlan
    from emulator.runtimes.cgroups import Hierarchies

#: StoragePlan's fields, and the files (version 1) and keys (version 2) that hold them
_V1 = {
    "read": "blkio.throttle.read_bps_device",
    "write": "blkio.throttle.write_bps_device",
    "read_operations": "blkio.throttle.read_iops_device",
    "write_operations": "blkio.throttle.write_iops_device",
}
_V2 = {"read": "rbps", "write": "wbps", "read_operations": "riops", "write_operations": "wiops"}
#: how the kernel shows a limit that is not set
_NONE = "max"
MOST_OPERATIONS = 2**32 - 2


@dataclass(frozen=True)
class Disk:
    """The disk that nodes' files lie on, `number` as the kernel writes it ("254:0"); or `why` it cannot be capped."""

    number: str = ""
    why: str = ""


def disk(hierarchies: Hierarchies, place: Path | None, *, sys: Path = Path("/sys")) -> Disk:
    """The disk below a directory (None: the files are in memory), or why no cap on it would hold."""
    if place is None:
        return Disk(why="the nodes' files are in memory (EMU_NODE_DIR=DIRECTORY puts them on a disk)")
    if not hierarchies.disks:
        return Disk(why="this host has no cgroup controller of disks (blkio or io)")
    number = os.stat(place).st_dev  # noqa: PTH116 - the caller has made it
    entry = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not entry.exists():
        return Disk(why=f"the file system of {place} lies on no disk that the kernel can cap")
    if (entry / "partition").exists():  # limits are for whole disks
        entry = entry.resolve().parent
    return Disk((entry / "dev").read_text().strip())


def of_node(hierarchies: Hierarchies, node: NodePlan, on: Disk, time_scale: float) -> list[tuple[str, str, str]]:
    """What to write for a node's card: (controller, file, value); nothing where it has none, or the disk has no cap."""
    if node.storage is None or on.why:
        return []
    card = node.storage.scaled(time_scale)
    values = {name: _whole(getattr(card, name), name.endswith("operations")) for name in _V1}
    if hierarchies.is_v2(hierarchies.disks):
        limits = " ".join(f"{key}={values[name] or _NONE}" for name, key in _V2.items())
        return [(cgroups.DISKS_V2, "io.max", f"{on.number} {limits}")]
    return [(cgroups.DISKS_V1, file, f"{on.number} {values[name]}") for name, file in _V1.items() if values[name]]


def _whole(value: float, operations: bool) -> int:
    """A limit as the kernel takes it, at least 1; 0 = none."""
    if not value:
        return 0
    return min(max(1, round(value)), MOST_OPERATIONS) if operations else max(1, round(value))


def note(node: NodePlan, on: Disk) -> str:
    """Why a node's card is not held to its speed; empty where it is, or where the node has none."""
    return on.why if node.storage is not None else ""
