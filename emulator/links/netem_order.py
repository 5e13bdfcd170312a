"""Keeps a cable's packets in order on hosts with several CPUs.

A qdisc hands packets on from whichever CPU its timer or its sender runs on, and each CPU has a receive queue of its
own, so two packets handed on by two CPUs can overtake each other (seen in a VM whose CPUs were busy). Receive packet
steering (the kernel's Documentation/networking/scaling.rst) sends all that a device receives to one CPU's queue.

It is needed on the line's devices only. A port that sends to a node gets its packets from there, on one CPU, and its
timer is pinned to that one; and what comes in from a node is moved by the sender's own CPU, which holds the sender
back where it sends faster than the kernel can move.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.links.netns import inside

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SYS = "/sys"


def steer(hub: Path, lines: Sequence[Sequence[str]]) -> None:
    """Steer the devices of each cable's line to one CPU; cables take turns. Raises OSError.

    sysfs alone can set it, and shows the devices of the network namespace in which it was mounted, so the calling
    thread's mount namespace changes: to be called in a thread of its own.
    """
    cpus = sorted(os.sched_getaffinity(0))
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    with inside(str(hub)):
        linux.mount("sysfs", _SYS, "sysfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        for cable, names in enumerate(lines):
            for name in names:
                _write(f"{_SYS}/class/net/{name}/queues/rx-0/rps_cpus", mask(cpus[cable % len(cpus)]))


def mask(cpu: int) -> str:
    """A set of one CPU as the kernel reads it: hexadecimal, in groups of 32 bits, the highest first."""
    groups = ["0"] * (cpu // 32 + 1)
    groups[0] = f"{1 << cpu % 32:x}"
    return ",".join(groups)


def _write(path: str, value: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # a kernel for one CPU, which keeps order by itself
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
