"""Whether programs that were just started stay: one that fails at once is a mistake to tell before a lab is up."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.runtimes.docker import ended, engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.runtimes.state import NodeState

#: real seconds in which a program that cannot run, or does not find its files, has failed
WITHIN = 0.3


def check(nodes: Mapping[str, NodeState]) -> None:
    """Wait a moment; raises RuntimeFailure when one of these containers has ended with another status than 0."""
    for name in _ended(nodes):
        found = nodes[name]
        client = engine.client()
        with engine.told(name):
            status = client.wait(found.container, timeout=10)["StatusCode"]
        if status:
            raise ended.reason(client, name, found)


def _ended(nodes: Mapping[str, NodeState]) -> list[str]:
    """Those whose pid 1 has ended by then."""
    clock = RealClock()
    deadline = clock.now() + WITHIN
    poll = select.poll()
    waiting: dict[int, str] = {}
    gone = []
    try:
        for name, node in nodes.items():
            try:
                handle = os.pidfd_open(node.pid)
            except ProcessLookupError:
                gone.append(name)
                continue
            waiting[handle] = name
            poll.register(handle, select.POLLIN)
        while len(gone) < len(nodes) and (left := deadline - clock.now()) > 0:
            for handle, _ in poll.poll(left * 1000):
                poll.unregister(handle)
                gone.append(waiting[handle])
    finally:
        for handle in waiting:
            os.close(handle)
    return gone
