"""What a node may see of the host's files: which directories are hidden, and which of ours are shown again.

The interpreter, the checkout, the data cache and the working directory stay usable where they lie under a hidden
directory or on another mount: they are bound read-only. All the rest of the root file system is there as the
lower layer of the node's overlay.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.lab_id import ENV_LAB, state_root

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan

HOME = "/root"
#: hidden directories and the mode of the empty ones in their place
HIDDEN = {
    "/root": 0o700, "/home": 0o755, "/run": 0o755, "/tmp": 0o1777, "/var/tmp": 0o1777, "/etc/ssl/private": 0o700,
    "/etc/ssh": 0o755, "/boot": 0o755, "/mnt": 0o755, "/media": 0o755,
    "/var/lib/docker": 0o700, "/var/lib/containers": 0o700,
}  # fmt: skip
#: files that are there, but empty
EMPTIED = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/resolv.conf")
_THREADS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS",
    "BLIS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """`hidden` with modes, `shown` read-only binds, `cwd` where a node's programs start."""

    hidden: tuple[tuple[str, int], ...]
    shown: tuple[str, ...]
    cwd: str


def disk_root() -> Path | None:
    """Where nodes' own files lie on disk: EMU_NODE_DIR; None = in memory."""
    given = os.environ.get("EMU_NODE_DIR")
    return Path(given) if given else None


def data_directory() -> Path:
    """Where data sets are cached, as `emulator.training.data` has it (which may not be imported from here)."""
    given = os.environ.get("EMU_DATA_DIR")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "emu" / "data"


def of_host() -> View:
    """The view for this process's interpreter, checkout, data and working directory."""
    disk = disk_root()
    hidden = HIDDEN | {str(place): 0o700 for place in (disk, state_root()) if place is not None}
    package = Path(__file__).resolve().parents[3]
    checkout = package if (package / "pyproject.toml").is_file() else package / "emulator"
    cwd = _cwd()
    wanted = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), checkout, data_directory()]
    shown = _outermost(path for path in [*wanted, cwd] if path is not None and _showable(path, hidden))
    needed = tuple(str(path) for path in shown if _is_lost(path, hidden))
    usable = cwd is not None and (not _is_lost(cwd, hidden) or any(cwd.is_relative_to(path) for path in needed))
    real = tuple((path, mode) for path, mode in sorted(hidden.items()) if Path(path).is_dir())
    return View(real, needed, str(cwd) if usable else HOME)


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _showable(path: Path, hidden: dict[str, int]) -> bool:
    """Whether showing this directory would not undo the hiding of a whole one, or of somebody's home."""
    real = path.resolve()
    whole = real == Path("/") or real == Path.home() or any(Path(name).is_relative_to(real) for name in hidden)
    return real.is_dir() and not whole and real.parent != Path("/home")


def _outermost(paths: object) -> list[Path]:
    found = sorted({*paths})  # type: ignore[misc]
    return [path for path in found if not any(path != other and path.is_relative_to(other) for other in found)]


def _is_lost(path: Path, hidden: dict[str, int]) -> bool:
    """Whether the overlay over / would not show it: it lies under a hidden directory or on another mount."""
    return any(path.is_relative_to(name) for name in hidden) or path.stat().st_dev != Path("/").stat().st_dev


def environment(lab: LabId, plan: Plan, node: NodePlan) -> tuple[tuple[str, str], ...]:
    """A node's whole environment; what the topology file sets wins."""
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    values = {
        "PATH": path,
        "HOME": HOME,
        "LANG": "C.UTF-8",
        ENV_LAB: lab.name,
        "EMU_NODE": node.name,
        "EMU_TIME_SCALE": repr(float(plan.time_scale)),
        "EMU_DATA_DIR": str(data_directory()),
        **dict.fromkeys(_THREADS, str(node.threads)),
        # Threads that spin while they wait eat the node's quota: an evaluation with two took 15 s of CPU, not 4.
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    return tuple((values | dict(node.env)).items())
