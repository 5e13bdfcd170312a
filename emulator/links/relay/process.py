"""Starting the relay's supervisor, and ending whatever of it is left, found by its command line alone."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.core.lab_id import ENV_LAB
from emulator.links.relay.handover import send_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.core.lab_id import LabId

MODULE = "emulator.links.relay"
_WAIT = 10.0


def _import_path() -> str:
    """Where `emulator` lies; told to the child, which skips the search for installed packages."""
    return str(Path(__file__).resolve().parents[3])


class Starting:
    """A supervisor on its way: it starts while the caller makes the TAPs that `hand_over` gives it."""

    def __init__(self, lab: LabId) -> None:
        self._lab = lab
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {"PYTHONPATH": _import_path(), ENV_LAB: lab.name, "PATH": os.defpath}
        argv = [sys.executable, "-S", "-m", MODULE, str(lab.directory), str(theirs.fileno())]
        self._child = subprocess.Popen(
            argv, env=environment, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, close_fds=True
        )
        theirs.close()

    def hand_over(self, taps: Sequence[int]) -> None:
        """Give it the TAPs and wait until a relay moves packets; raises LinkError when none will."""
        try:
            self._ours.settimeout(_WAIT)
            send_descriptors(self._ours, taps)
            word = self._ours.recv(4096)
        except OSError as error:
            word = str(error).encode()
        finally:
            self.close()
        if word != b"ready":
            raise LinkError(
                f"the relay does not start ({word.decode() or 'it ended at once'})",
                where=f"lab {self._lab.name}",
                fix=f"see {self._lab.directory / 'relay' / 'log'}",
            )

    def close(self) -> None:
        """Let go of it; one that has not got its TAPs ends by itself."""
        self._ours.close()
        self._child.wait(_WAIT)


def running(lab: LabId) -> list[int]:
    """Processes of the lab's relay and its supervisor, the older first."""
    mark = b"\0".join([b"-m", MODULE.encode(), str(lab.directory).encode(), b""])
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if mark in line:
            found.append(int(entry.name))
    return sorted(found)


def end(lab: LabId) -> list[int]:
    """Kill the supervisor, then the relay, and wait until they are gone; returns those that were."""
    ended: list[int] = []
    while pids := running(lab):
        for pid in pids:
            _kill(pid)
        ended += [pid for pid in pids if pid not in ended]
    return ended


def _kill(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], _WAIT)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def in_threads(work: Callable[[int], None], items: Sequence[int]) -> None:
    """Do many slow kernel calls at once: each removal of an interface waits 25 ms for the kernel's readers."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, min(64, len(items)))) as pool:
        list(pool.map(work, items))
