"""The relay's supervisor: `python -m emulator.links.relay LAB_DIRECTORY CHANNEL`, started by the driver.

It marks itself (control group), takes the TAP descriptors over the channel, goes to the background, and keeps one
relay running. It holds the descriptors too, so a relay that dies leaves every interface up with its carrier, and
the next one finds the packets that came meanwhile. A relay that is asked to shut down ends its supervisor.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from emulator.core.errors import EmuError
from emulator.core.linux import PR_SET_PDEATHSIG, die_with_parent, prctl
from emulator.core.marks import join_control_group
from emulator.links.relay import control
from emulator.links.relay.handover import receive_descriptors
from emulator.links.relay.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

#: a relay that dies sooner than this, in seconds, is started again only after as long
_HASTY = 0.2


def main(directory: Path, channel: socket.socket) -> None:
    """Run; returns in no process. What goes wrong before the first relay runs is told over the channel."""
    die_with_parent(os.getppid())
    try:
        _raise_limit()
        join_control_group(SimpleNamespace(name=directory.name, cgroup=f"emu/{directory.name}"))  # type: ignore[arg-type]
        _background(directory)
        prctl(PR_SET_PDEATHSIG, 0)
        taps = receive_descriptors(channel)
        if taps is None:
            os._exit(1)  # the driver has given up, and removes what it made
        listener = control.listen(directory / "relay")
    except (EmuError, OSError) as error:
        channel.send(str(error).encode() or b"no reason given")
        os._exit(1)
    _supervise(directory / "relay", taps, listener, channel)


def _raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _background(directory: Path) -> None:
    """Become a daemon whose words go to the relay's log."""
    if os.fork():
        os._exit(0)
    os.setsid()
    log = os.open(directory / "relay" / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, copy in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, copy)
    os.chdir("/")


def _supervise(directory: Path, taps: Sequence[int], listener: socket.socket, channel: socket.socket) -> None:
    """Keep a relay running until one ends of its own will."""
    restarts = 0
    while True:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _relay(directory, taps, listener, restarts, channel)
        channel.close()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            os._exit(0)
        restarts += 1
        sys.stderr.write(f"relay {child} ended with {code}, start number {restarts + 1}\n")
        sys.stderr.flush()
        if time.monotonic() - started < _HASTY:
            from emulator.core.clock import RealClock  # late: its imports cost 15 ms at each `emu up`

            RealClock().sleep(_HASTY)


def _relay(
    directory: Path, taps: Sequence[int], listener: socket.socket, restarts: int, channel: socket.socket
) -> None:
    """The life of a relay; leaves by _exit, with a traceback in the log where it was a bug that ended it."""
    try:
        server = Server(directory, taps, listener, restarts)
        if restarts == 0:
            channel.send(b"ready")
            channel.close()
        server.run()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
