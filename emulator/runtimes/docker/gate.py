"""The gate that holds a container's program back until its links are there: a shell that stops itself.

A stopped shell costs nothing while hundreds of nodes start, and needs nothing of the image but /bin/sh.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.core.errors import RuntimeFailure
from emulator.runtimes import cgroups
from emulator.runtimes.cgroups import NodeGroups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.runtimes.cgroups import Hierarchies

# Both in the container's own shared memory: always there, and gone with it. The first opens the gate; the second says
# that the shell is past it, for a SIGCONT that comes before the shell has stopped itself would be lost.
GO, PASSED = "/dev/shm/.emu-go", "/dev/shm/.emu-passed"
#: $1 is the restart policy, the rest the program; without one the node stays, for `emu exec`.
SCRIPT = f"""
while [ ! -e {GO} ]; do kill -STOP $$; done
: > {PASSED}
policy=$1; shift
while [ $# = 0 ]; do kill -STOP $$; done
[ "$policy" = no ] && exec "$@"
while :; do
  "$@"; status=$?
  [ "$policy" = on-failure ] && [ "$status" = 0 ] && exit 0
  echo "emu: $1 ended with exit status $status, starting it again"
  sleep 1
done
"""
_PATIENCE = 30.0


def open_all(hierarchies: Hierarchies, inits: Iterable[int]) -> list[int]:
    """Open the gates of the containers with these pids 1; returns those that had ended before. Idempotent.

    Raises RuntimeFailure for a shell that does not go on.
    """
    waiting, ended = set(), []
    for init in inits:
        try:
            _inside(init, GO).touch()
            waiting.add(init)
        except OSError:
            ended.append(init)
    clock = RealClock()
    deadline = clock.now() + _PATIENCE
    while waiting := {init for init in waiting if _is_closed(init)}:
        if clock.now() > deadline:
            raise RuntimeFailure(
                f"{len(waiting)} containers do not start their programs",
                fix="see `docker logs`; the image's /bin/sh must run",
            )
        for init in waiting:
            for pid in _stopped(hierarchies, init):
                _signal(pid, signal.SIGCONT)
        clock.sleep(0.002)
    return ended


def signal_behind(hierarchies: Hierarchies, init: int, sig: int) -> None:
    """Let a shell that waits at its gate take a signal that pid 1 was sent: a stopped process takes only SIGKILL."""
    for pid in _stopped(hierarchies, init):
        _signal(pid, sig)
        _signal(pid, signal.SIGCONT)


def _inside(init: int, path: str) -> Path:
    return Path(f"/proc/{init}/root{path}")


def _is_closed(init: int) -> bool:
    """Whether the shell has yet to pass; one whose container has ended since has nothing left to pass."""
    return _inside(init, GO).exists() and not _inside(init, PASSED).exists()


def _stopped(hierarchies: Hierarchies, init: int) -> list[int]:
    try:
        group = NodeGroups.of_process(hierarchies, init).all[0]
    except RuntimeFailure:  # it has ended
        return []
    return [pid for pid in cgroups.processes(group) if _state(pid) == "T"]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


def _signal(pid: int, sig: int) -> None:
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        return
