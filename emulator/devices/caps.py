"""What a device is worth on this host: its cores as shares of the host's, its threads, its memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError
from emulator.core.units import Share, Size

if TYPE_CHECKING:
    from emulator.devices.host import HostSpeed
    from emulator.devices.profile import DeviceProfile

MINIMUM_MEMORY = Size(16 * 2**20)


@dataclass(frozen=True)
class Caps:
    """A node's caps. `slower` is how many times slower than its device it is for want of host cores (1 = not).

    `gflops` is what the device's `cpus` do in an emulated second; `limited` is False for a node that may use all
    of the host. `native_cpus`: see `NodePlan`.
    """

    cpus: Share
    host_cpus: Share
    threads: int
    memory: Size
    gflops: float
    slower: float = 1.0
    limited: bool = True
    native_cpus: Share | None = None


def caps(
    device: DeviceProfile,
    host: HostSpeed,
    time_scale: float,
    cpus: Share | None = None,
    memory: Size | None = None,
    arch: str = "",
) -> Caps:
    """The caps of a node. One device core is worth its SGEMM over one host core's, divided by the time scale
    (s real seconds carry one emulated second); a node never gets more than the host has.

    Where the node's programs are for another processor than the host's, that share would only stall the program
    that emulates it: such a node gets a whole core of the host for each of its threads, and its share is told beside.

    Raises TopologyError for more than the device or the host has.
    """
    total = _memory(device, host, memory)
    cores = device.cores.value if device.cores else float(host.cores)
    if cpus is not None and cpus <= 0:
        raise TopologyError("0 cores run nothing", fix="write `cpus` like 0.5 or 4")
    if device.cores and cpus is not None and cpus > cores:
        raise TopologyError(
            f"{device.name} has {cores:g} cores, not {float(cpus):g}",
            fix=f"write at most {cores:g}, or take another device",
        )
    used = Share(cores if cpus is None else cpus)
    foreign = arch not in ("", host.arch)
    if device.cores is None and cpus is None:
        emulated, all_cores = host.gflops * host.cores * time_scale, Share(host.cores)
        native = all_cores if foreign else None
        return Caps(used, all_cores, host.cores, total, emulated, limited=False, native_cpus=native)
    # A device without a figure of its own (server, laptop) has the host's cores, and the host's clock with them:
    # it is as fast as the host in real time, and so slower in emulated time under a small time scale.
    core_gflops = device.core_gflops if device.core_gflops is not None else host.gflops * time_scale
    asked = used * core_gflops / host.gflops / time_scale
    given = min(asked, float(host.cores))
    threads = max(1, min(math.ceil(used), math.ceil(round(given, 9))))
    if foreign:
        return Caps(used, Share(threads), threads, total, used * core_gflops, native_cpus=Share(asked))
    return Caps(used, Share(given), threads, total, used * core_gflops, slower=asked / given)


def _memory(device: DeviceProfile, host: HostSpeed, memory: Size | None) -> Size:
    wanted = memory if memory is not None else Size(device.memory.value) if device.memory else host.memory
    if wanted > host.memory:
        raise TopologyError(
            f"{wanted / 2**30:.4g} GiB of memory are more than the {host.memory / 2**30:.4g} GiB of this host",
            fix="give the node a smaller `memory`",
        )
    if wanted < MINIMUM_MEMORY:
        raise TopologyError(f"{wanted} of memory is too little to run a program", fix="give at least 16 MiB")
    return wanted
