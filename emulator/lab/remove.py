"""Take a lab down by marks alone: no topology file, no Plan and no living controller is needed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emulator.core.errors import EmuError, HostError, LabError
from emulator.core.lab_id import LabId, state_root
from emulator.lab import state as lab_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.links.base import LinkDriver
    from emulator.runtimes.base import LabRuntime


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


def remove(lab: LabId, *, held: bool = False, parts: tuple[LabRuntime, LinkDriver] | None = None) -> list[str]:
    """Remove the lab; returns what was removed, as "kind name" lines. `held`: the caller holds the lock already.

    Without `parts` the runtime and link driver are those that the lab's state names, or, where a crash left
    none, all real ones. Raises LabError when another command is changing the lab right now.
    """
    if held or not lab.directory.is_dir():
        return _remove(lab, parts)
    with lab_state.locked(lab) as mine:
        if not mine:
            raise LabError(
                f"lab {lab.name!r} is being changed by another emu command",
                fix="wait for it, or end that command and try again",
            )
        return _remove(lab, parts)


def check_allowed(labs: list[LabId]) -> None:
    """Raise HostError, before anything is touched, where one of these labs is root's and this is not root."""
    from emulator.runtimes.embedded.remove import is_of_root

    if os.geteuid() != 0 and any(is_of_root(lab) for lab in labs):
        raise HostError("removing a lab needs root", fix="run it with sudo")


def _remove(lab: LabId, parts: tuple[LabRuntime, LinkDriver] | None) -> list[str]:
    with _uninterrupted():
        runtime, drivers = (parts[0], [parts[1]]) if parts else _found(lab)
        if lab.directory.is_dir():
            lab_state.set_phase(lab, lab_state.REMOVING)
        # Processes go first: whatever still runs could make something new behind our back.
        removed, failed = [], None
        try:
            removed += runtime.remove(lab)
        except EmuError as error:  # the rest can go all the same
            failed = error
        removed += [line for driver in drivers for line in driver.unplug(lab)]
        if failed is not None:
            raise failed
        if lab.directory.is_dir():
            shutil.rmtree(lab.directory)
            removed.append(f"state {lab.directory}")
        _prune()
    return removed


def _found(lab: LabId) -> tuple[LabRuntime, list[LinkDriver]]:
    """Who made the lab; where its state is gone, whoever removes the most."""
    from emulator import links, runtimes
    from emulator.runtimes.docker import engine

    state = lab_state.read(lab)
    if state is not None:
        return runtimes.make(state.runtime), [links.driver(state.link_driver)]
    return runtimes.make("docker" if engine.is_there() else "embedded"), [links.driver(name) for name in links.REAL]


def _prune() -> None:
    """Remove the state root when the last lab has gone."""
    root = state_root()
    for path in lab_state.abandoned(root):
        shutil.rmtree(path, ignore_errors=True)
    for path in (root / "labs", root):
        try:
            path.rmdir()
        except OSError:
            return


def leftovers() -> list[LabId]:
    """Every lab of which anything of ours is left: state, cgroup, mount, process or container."""
    from emulator.runtimes import embedded
    from emulator.runtimes.docker import engine

    known = {*lab_state.names(state_root()), *embedded.find_labs(), *engine.find_labs()}
    return [LabId(name, state_root()) for name in sorted(known)]
