"""Keeps a cable's packets in order on hosts with several CPUs.

A qdisc hands packets on from whichever CPU its timer or its sender runs on, and each CPU has a receive queue of its
own, so two packets handed on by two CPUs can overtake each other (seen in a VM whose CPUs were busy). Receive packet
steering (the kernel's Documentation/networking/scaling.rst) sends all that a device receives to one CPU's queue.
It is set in sysfs only, which shows the devices of the network namespace in which it was mounted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.links.netns import travelling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SYS = "/sys"


def steer(devices: Mapping[str, Iterable[tuple[str, int]]]) -> None:
    """Steer devices, given by their namespace's path as (name, number of the cable); cables share out the CPUs.

    Raises OSError. Changes the calling thread's mount namespace: to be called in a thread of its own.
    """
    cpus = sorted(os.sched_getaffinity(0))
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    with travelling() as go:
        for path, found in devices.items():
            go(path)
            linux.mount("sysfs", _SYS, "sysfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
            for name, cable in found:
                _write(f"{_SYS}/class/net/{name}/queues/rx-0/rps_cpus", mask(cpus[cable % len(cpus)]))
            linux.umount(_SYS)


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
