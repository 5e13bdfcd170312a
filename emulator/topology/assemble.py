"""A topology resolved into the frozen Plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emulator.core.clock import AUTO
from emulator.core.errors import TopologyError, UsageError
from emulator.core.lab_id import NAME as LAB_NAME
from emulator.core.plan import Endpoint, LinkPlan, NodePlan, Plan
from emulator.core.processor import ARCHITECTURES
from emulator.core.units import Rate
from emulator.devices.caps import Asked, Caps, caps
from emulator.devices.card import card
from emulator.devices.delivery import known
from emulator.devices.power import power
from emulator.devices.profile import UNLIMITED, profile
from emulator.topology import expand, graph, line, notes, settle
from emulator.topology.model import MAX_TIME_SCALE, MIN_TIME_SCALE
from emulator.topology.network import Network

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.clock import TimeScale
    from emulator.devices.host import HostSpeed
    from emulator.devices.profile import DeviceProfile
    from emulator.topology.expand import OneLink, OneNode
    from emulator.topology.graph import Graph
    from emulator.topology.line import Line
    from emulator.topology.settle import Settled
    from emulator.topology.topology import Topology


def assemble(
    topology: Topology,
    *,
    name: str | None = None,
    time_scale: TimeScale,
    seed: int | None = None,
    arch: str | None = None,
    host: HostSpeed,
) -> Plan:
    """The Plan of a topology on this host at a time scale (a number); arguments go before the file's own values, but
    `arch` is that of machines for which the file names none ("arm64": of the ARM boards among them).

    Raises TopologyError for what the file says wrongly, UsageError for an argument that cannot be.
    """
    spec, document = topology.spec, topology.document
    scale = _scale(time_scale)
    _check_arguments(name, seed, arch)
    nodes = expand.nodes(topology)
    links = expand.links(topology, nodes)
    settler = settle.Settler(topology)
    said = {one.name: settler.settle(one) for one in nodes.values()}
    settled = {one.name: _with_arch(one, said[one.name], topology, arch) for one in nodes.values()}
    nics = _nics(nodes, settled, topology)
    lines = {one.name: line.settle(one, settled, document, nics) for one in links.values()}
    worth = _worth([one for one in nodes.values() if one.spec.kind == "host"], settled, topology, host, scale)
    network = Network(_graph(topology, nodes, links, lines))
    return Plan(
        name=name or topology.name,
        nodes=tuple(_node(one, settled[one.name], worth.get(one.name), network) for one in nodes.values()),
        links=tuple(_link(index, one, lines[one.name], network) for index, one in enumerate(links.values())),
        time_scale=float(scale),
        seed=spec.seed if seed is None else seed,
        hosts=tuple(
            (one, network.primary(one)) for one in nodes if nodes[one].spec.kind != "switch" and network.at(one)
        ),
        notes=tuple(
            [*notes.of(nodes, settled, worth, lines, host, scale, network.large_segments)]
            + ([f"--arch {arch} has no effect: {_NO_BOARD}"] if arch and settled == said else [])
        ),
        source=topology.path,
    )


#: why an --arch changes nothing
_NO_BOARD = "every machine names its own arch, or is no ARM board"


def _scale(asked: TimeScale) -> float:
    if isinstance(asked, (int, float)) and MIN_TIME_SCALE <= asked <= MAX_TIME_SCALE:
        return asked
    raise UsageError(
        f"a time scale cannot be {asked!r}",
        where="--time-scale",
        fix=f"write {AUTO}, or a number of at least {MIN_TIME_SCALE:g}, at most {MAX_TIME_SCALE:g}",
    )


def _check_arguments(name: str | None, seed: int | None, arch: str | None) -> None:
    if name is not None and not LAB_NAME.match(name):
        raise UsageError(f"{name!r} is not a lab name", where="--name", fix="use up to 40 of a-z, 0-9 and -")
    if seed is not None and seed < 0:
        raise UsageError(f"a seed cannot be {seed}", where="--seed", fix="it must be at least 0")
    if arch is not None and arch not in ARCHITECTURES:
        fix = f"use {' or '.join(ARCHITECTURES)}"
        raise UsageError(f"{arch!r} is not a processor of nodes", where="--arch", fix=fix)


def _with_arch(one: OneNode, said: Settled, topology: Topology, arch: str | None) -> Settled:
    """What a host says, with the arch that was asked for where it names none and may have that one."""
    if arch is None or one.spec.kind != "host" or "arch" in said.values:
        return said
    if arch == "arm64" and not _device(one, said, topology).cpu_model:
        return said
    return replace(said, values=said.values | {"arch": arch})


def _device(one: OneNode, settled: Settled, topology: Topology) -> DeviceProfile:
    try:
        return profile(settled.values.get("device", UNLIMITED))
    except TopologyError as error:
        where = topology.document.where(*settled.steps.get("device", one.steps))
        raise TopologyError(error.what, where=where, fix=error.fix) from None


def _nics(nodes: dict[str, OneNode], settled: dict[str, Settled], topology: Topology) -> dict[str, line.Nic]:
    """The network ports of the hosts whose device tells how fast it is."""
    found = {}
    for one in nodes.values():
        if one.spec.kind == "host":
            device = _device(one, settled[one.name], topology)
            nic = device.figure("nic")
            if nic is not None:
                found[one.name] = line.Nic(device.name, Rate(nic.value))
    return found


def _graph(topology: Topology, nodes: dict[str, OneNode], links: dict[str, OneLink], lines: dict[str, Line]) -> Graph:
    edges = []
    for one in links.values():
        way = lines[one.name]
        where = topology.document.where(*one.steps)
        spread = way.up.jitter + way.down.jitter
        edges.append(graph.Edge(one.name, one.a, one.b, way.up.delay, way.down.delay, spread, way.mtu, where))
    kinds = {one.name: one.spec.kind for one in nodes.values()}
    place = "links" if topology.spec.links else "nodes"
    return graph.build(kinds, edges, topology.document.where(place))


def _worth(
    hosts: Sequence[OneNode], settled: Mapping[str, Settled], topology: Topology, host: HostSpeed, scale: float
) -> dict[str, Caps]:
    """The caps of all machines, with as many host cores in use as they ask for when all compute at once."""
    alone = {one.name: _caps(one, settled[one.name], topology, host, scale) for one in hosts}
    busy = min(float(host.cores), sum(float(one.host_cpus) for one in alone.values()))
    if busy <= 1 or all(one.basis.speed.loaded == one.basis.speed.one for one in alone.values()):
        return alone
    return {one.name: _caps(one, settled[one.name], topology, host, scale, busy) for one in hosts}


def _caps(one: OneNode, settled: Settled, topology: Topology, host: HostSpeed, scale: float, busy: float = 1.0) -> Caps:
    values, steps = settled.values, settled.steps
    device = _device(one, settled, topology)
    asked = Asked(
        values.get("cpus"), values.get("memory"), values.get("arch", ""), values.get("calibrate", Asked.calibrate)
    )
    try:
        return caps(device, host, scale, asked, busy)
    except TopologyError as error:
        key = next((key for key, word in _ABOUT.items() if word in error.what), "memory")
        where = topology.document.where(*steps.get(key, steps.get("device", one.steps)))
        raise TopologyError(f"node {one.name!r}: {error.what}", where=where, fix=error.fix) from None


#: the key that an error about caps is of, by a word in it
_ABOUT = {"calibrate": "calibrat", "cpus": "core"}


def _node(one: OneNode, settled: Settled, worth: Caps | None, network: Network) -> NodePlan:
    interfaces = network.interfaces(one.name)
    routes = () if one.spec.kind == "switch" else network.route_table(one.name)
    primary = next((item.address.ip for item in interfaces if item.address), None)
    base: dict[str, Any] = {"group": one.group, "address": primary, "interfaces": interfaces, "routes": routes}
    if worth is None:
        return NodePlan(one.name, one.spec.kind, **base)
    values = settled.values
    device = profile(values.get("device", UNLIMITED))
    clock = device.figure("clock")
    return NodePlan(
        one.name,
        device=device.name,
        role=values.get("role", ""),
        cpus=worth.cpus,
        host_cpus=worth.host_cpus,
        native_cpus=worth.native_cpus,
        threads=worth.threads,
        memory=worth.memory,
        pids=values.get("pids", NodePlan.pids),
        gflops=worth.gflops,
        command=values.get("command", ()),
        restart=values.get("restart", "no"),
        image=values.get("image", ""),
        arch=values.get("arch", ""),
        cpu_model=device.cpu_model,
        power=power(device),
        machine=device.title if device.cores else "",
        clock=clock.value if clock else 0.0,
        worth=known(worth.basis.work).for_work(float(worth.host_cpus) / worth.threads) if worth.limited else 1.0,
        storage=card(device),
        env=tuple(values.get("env", {}).items()),
        **base,
    )


def _link(index: int, one: OneLink, way: Line, network: Network) -> LinkPlan:
    longest = network.longest[index]
    return LinkPlan(
        name=one.name,
        a=Endpoint(one.a, network.names[one.a, index]),
        b=Endpoint(one.b, network.names[one.b, index]),
        a_to_b=line.impairment(way.up, way, longest),
        b_to_a=line.impairment(way.down, way, longest),
        mtu=way.mtu,
        preset=way.preset,
        source=way.source,
    )
