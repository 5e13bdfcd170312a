"""Keeps the host's processors awake while a lab's nodes work, so that what they are given is worth the same.

An idle processor is halted, and comes back at a lower clock: measured on a virtual machine, it computes at 0.65 to 0.8
of its speed for the first 1 to 2 ms. A capped node, which runs for a few milliseconds and then stands still, pays that
each time: 8 to 17 % at a quarter of a core. A request to the kernel's power management (/dev/cpu_dma_latency) lets
idle processors poll instead; it ends with the process that holds it. Nobody asks for it while the nodes are idle.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NoReturn

from emulator.core import linux, marks
from emulator.core.clock import RealClock
from emulator.core.enter import cut_ties
from emulator.core.problem import Problem
from emulator.runtimes import cgroups

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.core.lab_id import LabId
    from emulator.runtimes.cgroups import Hierarchies

DEVICE = "/dev/cpu_dma_latency"
#: set to 0, processors may sleep (a laptop on battery)
SWITCH = "EMU_AWAKE"
#: seconds between two looks, the part of a processor that counts as work, and how long to wait for more of it
_LOOK, _WORK, _PATIENCE = 0.1, 0.02, 2.0


def problem() -> Problem | None:
    """Why processors are not kept awake here; None = they are."""
    if os.environ.get(SWITCH) == "0":
        return Problem(f"{SWITCH}=0 lets idle processors sleep, so small caps deliver less", f"unset {SWITCH}")
    if not os.access(DEVICE, os.W_OK):
        return Problem(
            f"{DEVICE} cannot be written, so idle processors sleep and small caps deliver less",
            f"run emu as root; in a container, with --device {DEVICE}",
        )
    return None


def hold() -> int:
    """Keep this host's processors awake until the descriptor that this returns is closed; raises OSError."""
    file = os.open(DEVICE, os.O_WRONLY | os.O_CLOEXEC)
    os.write(file, struct.pack("i", 0))
    return file


def launch(lab: LabId, hierarchies: Hierarchies) -> None:
    """Start the lab's helper that does so; it ends with the lab. Does nothing where there is a `problem`."""
    if problem() is not None:
        return
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        marks.join_control_group(lab)
        if os.fork() == 0:
            _settle(f"emu-awake {lab.name}")
            _watch(_clock_file(hierarchies, lab))
    finally:
        os._exit(0)


def _settle(title: str) -> None:
    area = linux.title_area()
    cut_ties(set())
    linux.set_title(title, area)


def _clock_file(hierarchies: Hierarchies, lab: LabId) -> Path:
    """Where the CPU time of all the lab's nodes stands."""
    root = hierarchies.root("cpuacct")
    assert root is not None, "probe() passed a host without cpu"
    return root / lab.cgroup / hierarchies.cpu_time


def _watch(file: Path) -> NoReturn:
    clock = RealClock()
    held, worked = -1, clock.now()
    seen = cgroups.seconds(file)
    while True:
        clock.sleep(_LOOK)
        try:
            used = cgroups.seconds(file)
        except OSError:  # the lab is gone
            os._exit(0)
        now = clock.now()
        if used - seen > _WORK * _LOOK:
            worked = now
            held = hold() if held < 0 else held
        elif held >= 0 and now - worked > _PATIENCE:
            os.close(held)
            held = -1
        seen = used
