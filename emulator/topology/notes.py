"""What a reader of a Plan should know beyond its numbers: assumptions made and wishes not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.words import some
from emulator.devices import cores
from emulator.devices.basis import HOST
from emulator.devices.profile import UNLIMITED, profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from emulator.core.units import Rate
    from emulator.devices.basis import Basis
    from emulator.devices.caps import Caps
    from emulator.devices.host import HostSpeed
    from emulator.topology.expand import OneNode
    from emulator.topology.line import Line
    from emulator.topology.settle import Settled


def of(
    nodes: Mapping[str, OneNode],
    settled: Mapping[str, Settled],
    worth: Mapping[str, Caps],
    lines: Mapping[str, Line],
    host: HostSpeed,
    time_scale: float,
    looked_up: Sequence[str],
) -> Iterator[str]:
    """The Plan's notes, a sentence each."""
    free = [name for name, caps in worth.items() if not caps.limited]
    if free:
        yield f"{some(free)}: not limited beyond this host ({host.cores} cores)"
    yield from _emulated(settled, worth)
    yield from _slower(worth, host, time_scale)
    yield from _calibrated(settled, worth)
    total = sum(caps.host_cpus for caps in worth.values() if caps.limited)
    if total > host.cores:
        yield (
            f"if all nodes compute at once they ask for {total:.1f} host cores, and this host has {host.cores}; "
            "`--time-scale auto` finds what it carries"
        )
    # A node that says nothing of its memory may use the host's, and does not ask for it.
    asked = [name for name, caps in worth.items() if caps.limited or "memory" in settled[name].values]
    memory = sum(worth[name].memory for name in asked)
    if memory > host.memory:
        yield f"the nodes' memory adds up to {memory / 2**30:.1f} GiB, and this host has {host.memory / 2**30:.1f} GiB"
    yield from _other_core(settled)
    yield from _network_ports(lines)
    open_links = [name for name, way in lines.items() if way.up.rate is None or way.down.rate is None]
    if open_links:
        yield f"{some(open_links)}: no rate is set, so nothing limits it"
    if looked_up:
        yield f"{some(looked_up)}: too many neighbours to set; each is looked up (ARP) at first contact"
    commands = [name for name in nodes if "restart" in settled[name].values and "command" not in settled[name].values]
    if commands:
        yield f"{some(commands)}: `restart` has no effect without a `command`"


def _network_ports(lines: Mapping[str, Line]) -> Iterator[str]:
    limited: dict[tuple[str, Rate], list[str]] = {}
    for name, way in lines.items():
        for one in dict.fromkeys((one.nic, one.rate) for one in (way.up, way.down) if one.nic and one.rate):
            limited.setdefault(one, []).append(name)
    for (device, rate), names in limited.items():
        yield f"{some(names)}: {rate}, for the network port of {device} is no faster"


def _other_core(settled: Mapping[str, Settled]) -> Iterator[str]:
    """ARM64 nodes of an ARM64 host run on its own core, whatever their device has."""
    here = cores.of_host()
    wanted: dict[str, list[str]] = {}
    for name, node in settled.items():
        core = profile(node.values.get("device", UNLIMITED)).cpu_model if node.values.get("arch") == "arm64" else ""
        if here and core and here != (core,):
            wanted.setdefault(core, []).append(name)
    for core, names in wanted.items():
        yield (
            f"{some(names)}: the device's core is {core}, and programs run on this host's {' and '.join(here)}, "
            "which may take instructions that the device does not"
        )


def _emulated(settled: Mapping[str, Settled], worth: Mapping[str, Caps]) -> Iterator[str]:
    archs: dict[str, list[str]] = {}
    for name, caps in worth.items():
        if caps.native_cpus is not None:
            archs.setdefault(settled[name].values["arch"], []).append(name)
    for arch, names in archs.items():
        yield (
            f"{some(names)}: in containers QEMU runs the {arch} programs, so CPU caps are lifted to whole cores of "
            "this host; only an experiment's training steps are paced to the device"
        )


def _slower(worth: Mapping[str, Caps], host: HostSpeed, time_scale: float) -> Iterator[str]:
    factors: dict[float, list[str]] = {}
    for name, caps in worth.items():
        if caps.slower > 1.0001:
            factors.setdefault(round(caps.slower, 4), []).append(name)
    for factor, names in factors.items():
        asked = factor * host.cores
        yield (
            f"{some(names)}: {factor:.3g} times slower than asked (at time scale {time_scale:g} "
            f"each needs {asked:.3g} host cores, and this host has {host.cores}); "
            f"time scale {time_scale * factor:.4g} would do"
        )


def _calibrated(settled: Mapping[str, Settled], worth: Mapping[str, Caps]) -> Iterator[str]:
    """What each kind of device is worth here, and by which figures."""
    kinds: dict[tuple[str, Basis], list[str]] = {}
    for name, caps in worth.items():
        if caps.limited and caps.basis.name != HOST:
            kinds.setdefault((settled[name].values.get("device", UNLIMITED), caps.basis), []).append(name)
    for (device, by), names in kinds.items():
        yield (
            f"{some(names)}: a core of {device} is worth {by.worth:.3g} of this host's at time scale 1 "
            f"(calibrated by {by.name}: {by.figures})"
        )
