"""What a lab keeps on disk, so that any later command can go on with it. Frozen format, versioned.

`<state root>/labs/<name>/`: `lab.json` (who made it, by which runtime and link driver, in which phase),
`plan.json`, `journal.jsonl` (what was about to be made, one line each), and what runtime and links keep below.
Whoever changes the lab holds a POSIX lock on `lock` (children do not inherit it, and it goes with its holder).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.clock import epoch
from emulator.core.errors import HostError, LabError
from emulator.core.plan import Plan
from emulator.core.state_file import replace_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.core.lab_id import LabId

VERSION = 1
MAKING, UP, REMOVING = "making", "up", "removing"


@dataclass(frozen=True)
class LabState:
    """`phase` is "making", "up" or "removing"; `created` is seconds since the epoch."""

    name: str
    runtime: str
    link_driver: str
    phase: str = MAKING
    created: float = 0.0
    controller: int = 0
    version: int = VERSION


class FileJournal:
    """Appends what is about to be made. The directory lies on a tmpfs that lives as long as the kernel does,
    just as namespaces and cgroups do, so a write is as durable as what it speaks of."""

    def __init__(self, lab: LabId) -> None:
        self._fd = os.open(
            lab.directory / "journal.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )

    def __call__(self, kind: str, name: str, /) -> None:
        os.write(self._fd, (json.dumps({"v": VERSION, "kind": kind, "name": name}) + "\n").encode())

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def reserved(lab: LabId, runtime: str, link_driver: str) -> Iterator[None]:
    """Make the lab's directory with its first state, and hold its lock; raises LabError when the name is in use.

    The directory appears under its name with the lock already held, so that no other command can take it for
    a leftover.
    """
    fresh = lab.directory.with_name(f".{lab.name}.{os.getpid()}")
    try:
        fresh.mkdir(parents=True, mode=0o700)
        fd = os.open(fresh / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HostError(
            f"the state directory cannot be made ({error.strerror})",
            where=str(lab.directory.parent),
            fix="free space or set EMU_STATE_DIR to a writable directory",
        ) from None
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        state = LabState(lab.name, runtime, link_driver, MAKING, epoch(), os.getpid())
        replace_state(fresh / "lab.json", json.dumps(asdict(state), indent=1))
        try:
            fresh.rename(lab.directory)
        except OSError:
            raise LabError(
                f"a lab named {lab.name!r} is there already",
                fix=f"stop it with `emu down {lab.name}`, or give this one another name with --name",
            ) from None
        yield
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        os.close(fd)


def write(lab: LabId, state: LabState) -> None:
    """Replace `lab.json` atomically."""
    replace_state(lab.directory / "lab.json", json.dumps(asdict(state), indent=1))


def write_plan(lab: LabId, plan: Plan) -> None:
    """Keep the Plan, so that later commands need no topology file."""
    replace_state(lab.directory / "plan.json", plan.to_json())


def set_phase(lab: LabId, phase: str) -> None:
    """Change the phase where there is a state at all (a half-made lab may have none)."""
    state = read(lab)
    if state is not None:
        write(lab, replace(state, phase=phase))


def read(lab: LabId) -> LabState | None:
    """The lab's state; None when there is none, or only a torn one (then the lab was never up)."""
    try:
        raw: dict[str, Any] = json.loads((lab.directory / "lab.json").read_text())
        return LabState(**raw)
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError, TypeError):
        return None


def read_plan(lab: LabId) -> Plan:
    """The Plan of a lab that is up; raises LabError."""
    try:
        return Plan.from_json((lab.directory / "plan.json").read_text())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(
            f"the plan of lab {lab.name!r} cannot be read ({error})", fix=f"remove the lab with `emu down {lab.name}`"
        ) from None


def names(root: Path) -> list[str]:
    """Names of all labs that have a state directory under this state root."""
    return [path.name for path in _entries(root) if not path.name.startswith(".")]


@contextmanager
def locked(lab: LabId) -> Iterator[bool]:
    """Hold the lab's lock; yields False when another process holds it (nothing is waited for)."""
    try:
        fd = os.open(lab.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # another command has just removed the whole lab
        yield True
        return
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            yield False
            return
        yield True
    finally:
        os.close(fd)


def abandoned(root: Path) -> list[Path]:
    """Directories of `reserved` whose process was killed before it could give them their name."""
    found = [path for path in _entries(root) if path.name.startswith(".")]
    return [path for path in found if not Path(f"/proc/{path.name.rpartition('.')[2]}").exists()]


def is_up(lab: LabId) -> bool:
    """Whether the lab was made to its end, and nobody has begun to remove it."""
    state = read(lab)
    return state is not None and state.phase == UP


def _entries(root: Path) -> list[Path]:
    parent = root / "labs"
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"the state directory cannot be read ({error.strerror})",
            where=str(parent),
            fix="run as the user who started the labs, or set EMU_STATE_DIR to a directory of your own",
        ) from None
