"""What the user wrote (YAML) -> a fully resolved Plan. Heavy imports wait until a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.clock import AUTO

if TYPE_CHECKING:
    import os

    from emulator.core.clock import TimeScale
    from emulator.core.plan import Plan
    from emulator.devices.host import HostSpeed
    from emulator.topology.topology import Topology

__all__ = ["load", "load_plan", "resolve"]


def load(path: str | os.PathLike[str]) -> Topology:
    """Read and check a topology file; raises TopologyError with file, line and remedy."""
    from emulator.topology.topology import load as read_and_check

    return read_and_check(path)


def resolve(
    topology: Topology,
    *,
    name: str | None = None,
    time_scale: TimeScale | None = None,
    seed: int | None = None,
    arch: str | None = None,
    host: HostSpeed | None = None,
) -> Plan:
    """The Plan of a topology; arguments go before the file's values, `host` is this host's worth (else measured).

    `arch` ("amd64", "arm64") is that of machines for which the file names none; "arm64" of the ARM boards among them.
    The time scale "auto" becomes the fastest that the host carries, see `auto.choose`; the Plan's first note says why.
    Raises TopologyError for what the file says wrongly, UsageError for an argument that cannot be, HostError if
    the host cannot be measured.
    """
    from emulator.devices.host import calibration
    from emulator.topology.assemble import assemble

    known = host or calibration()

    def at(scale: TimeScale) -> Plan:
        return assemble(topology, name=name, time_scale=scale, seed=seed, arch=arch, host=known)

    asked = topology.spec.time_scale if time_scale is None else time_scale
    if asked != AUTO:
        return at(asked)
    from emulator.topology.auto import choose

    return choose(at, known.cores)


def load_plan(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    time_scale: TimeScale | None = None,
    seed: int | None = None,
    arch: str | None = None,
    host: HostSpeed | None = None,
) -> Plan:
    """`load` and `resolve` in one."""
    return resolve(load(path), name=name, time_scale=time_scale, seed=seed, arch=arch, host=host)
