"""The keeper's vigil over its nodes: of one whose first process has ended, the interfaces go down.

A namespace outlives its node (the keeper holds it), and its kernel would go on answering pings. A board without power
is silent.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

from emulator.core import ifreq, linux

_LOOPBACK = "lo"


class Vigil:
    """Watches first processes. `home` is a descriptor of the network namespace to be in."""

    def __init__(self, home: int) -> None:
        self._home = home
        self._poll = select.poll()
        self._namespaces: dict[int, int] = {}

    def add(self, pid: int, namespace: int) -> None:
        """Watch a child of ours; `namespace` is a descriptor of its network namespace."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended already, before it had any interface
            return
        self._namespaces[handle] = namespace
        self._poll.register(handle, select.POLLIN)

    def watch(self, seconds: float | None = None) -> None:
        """Wait so long (None: until a node dies), or less when one does, and take the dead ones' interfaces down."""
        for handle, _ in self._poll.poll(None if seconds is None else seconds * 1000):
            self._poll.unregister(handle)
            os.close(handle)
            linux.setns(self._namespaces.pop(handle), linux.CLONE_NEWNET)
            try:
                _take_down()
            finally:
                linux.setns(self._home, linux.CLONE_NEWNET)


def _take_down() -> None:
    with ifreq.handle() as sock:
        for _, interface in socket.if_nameindex():
            if interface != _LOOPBACK:
                with suppress(OSError):  # `emu down` has removed it meanwhile
                    ifreq.set_down(sock, interface)
