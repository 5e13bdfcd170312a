"""Take a lab down by marks alone: no topology file, no Plan and no living controller is needed."""

from __future__ import annotations

import shutil
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emulator.core.errors import LabError
from emulator.core.lab_id import LabId, state_root
from emulator.lab import state as lab_state

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT = 10.0


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and termination wait until the removal is done: half a removal is worse than a late exit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    kept = {
        sig: signal.signal(sig, lambda number, _frame: seen.append(number)) for sig in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for sig, handler in kept.items():
            signal.signal(sig, handler)
        if seen:
            signal.raise_signal(seen[0])


def remove(lab: LabId, *, held: bool = False) -> list[str]:
    """Remove the lab; returns what was removed, as "kind name" lines. `held`: the caller holds the lock already.

    Raises LabError when another command is changing the lab right now.
    """
    if held or not lab.directory.is_dir():
        return _remove(lab)
    with lab_state.locked(lab) as mine:
        if not mine:
            raise LabError(
                f"lab {lab.name!r} is being changed by another emu command",
                fix="wait for it, or end that command and try again",
            )
        return _remove(lab)


def _remove(lab: LabId) -> list[str]:
    from emulator import links
    from emulator.runtimes.embedded import EmbeddedRuntime

    with _uninterrupted():
        state = lab_state.read(lab)
        if lab.directory.is_dir():
            lab_state.set_phase(lab, lab_state.REMOVING)
        # Processes go first: whatever still runs could make something new behind our back.
        removed = EmbeddedRuntime().remove(lab) if state is None or state.runtime != "fake" else []
        for name in [state.link_driver] if state is not None else ["relay", "netem"]:
            removed += links.driver(name).unplug(lab)
        if lab.directory.is_dir():
            shutil.rmtree(lab.directory)
            removed.append(f"state {lab.directory}")
        _prune()
    return removed


def _prune() -> None:
    """Remove the state root when the last lab has gone."""
    root = state_root()
    for path in lab_state.abandoned(LabId("x", root)):
        shutil.rmtree(path, ignore_errors=True)
    for path in (root / "labs", root):
        try:
            path.rmdir()
        except OSError:
            return


def leftovers() -> list[LabId]:
    """Every lab of which anything of ours is left: state, cgroup, mount or process."""
    from emulator.runtimes.embedded import find_labs

    known = lab_state.names(LabId("x", state_root()))
    return [LabId(name, state_root()) for name in sorted({*known, *find_labs()})]
