"""What a device is worth on this host: its cores as shares of the host's, its threads, its memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError
from emulator.core.units import Share, Size
from emulator.devices.basis import AUTO, Basis, basis

if TYPE_CHECKING:
    from emulator.devices.host import HostSpeed
    from emulator.devices.profile import DeviceProfile

MINIMUM_MEMORY = Size(16 * 2**20)


@dataclass(frozen=True)
class Caps:
    """A node's caps. `slower` is how many times slower than its device it is for want of host cores (1 = not).

    `host_cpus` is the throughput that is asked for, in cores of this host. `gflops` is what the device's `cpus` do in
    an emulated second, in this host's SGEMM; `limited` is False for a node that may use all of the host.
    `native_cpus`: see `NodePlan`. `basis` is what the device was compared by.
    """

    cpus: Share
    host_cpus: Share
    threads: int
    memory: Size
    gflops: float
    basis: Basis
    slower: float = 1.0
    limited: bool = True
    native_cpus: Share | None = None


@dataclass(frozen=True)
class Asked:
    """What a file says of a node's size; None and "" = the device's own. `calibrate`: see `basis`."""

    cpus: Share | None = None
    memory: Size | None = None
    arch: str = ""
    calibrate: str | float = AUTO


def caps(device: DeviceProfile, host: HostSpeed, time_scale: float, asked: Asked, busy: float = 1.0) -> Caps:
    """The caps of a node: what its cores are worth in the host's by the basis asked for, at the time scale (s real
    seconds carry one emulated second); a node never gets more than the host has. `busy` host cores are in use when
    all nodes compute, so that memory and clock are shared.

    Where the node's programs are for another processor than the host's, that share would only stall the program
    that emulates it: such a node gets a whole core of the host for each of its threads, and its share is told beside.

    Raises TopologyError for more than the device or the host has, and as `basis` does.
    """
    total = _memory(device, host, asked.memory)
    cores = device.cores.value if device.cores else float(host.cores)
    if asked.cpus is not None and asked.cpus <= 0:
        raise TopologyError("0 cores run nothing", fix="write `cpus` like 0.5 or 4")
    if device.cores and asked.cpus is not None and asked.cpus > cores:
        raise TopologyError(
            f"{device.name} has {cores:g} cores, not {float(asked.cpus):g}",
            fix=f"write at most {cores:g}, or take another device",
        )
    used = Share(cores if asked.cpus is None else asked.cpus)
    foreign = asked.arch not in ("", host.arch)
    by = basis(asked.calibrate, device, host, time_scale)
    gflops = used * (by.charged / 1e9 or by.worth * host.gflops)
    if device.cores is None and asked.cpus is None and asked.calibrate == AUTO:
        all_cores = Share(host.cores)
        native = all_cores if foreign else None
        return Caps(used, all_cores, host.cores, total, gflops, by, limited=False, native_cpus=native)
    wanted = by.cpus(used, time_scale, host.cores, busy)
    given = min(wanted, float(host.cores))
    threads = max(1, min(math.ceil(used), math.ceil(round(given, 9))))
    if foreign:
        return Caps(used, Share(threads), threads, total, gflops, by, native_cpus=Share(wanted))
    return Caps(used, Share(given), threads, total, gflops, by, slower=wanted / given)


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
