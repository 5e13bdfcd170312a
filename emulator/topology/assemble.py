"""A topology resolved into the frozen Plan."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from emulator.core.errors import TopologyError, UsageError
from emulator.core.lab_id import NAME as LAB_NAME
from emulator.core.plan import Endpoint, InterfacePlan, LinkPlan, Neighbour, NodePlan, Plan, RoutePlan
from emulator.core.units import Delay
from emulator.devices.caps import Caps, caps
from emulator.devices.profile import UNLIMITED, profile
from emulator.topology import addressing, expand, graph, line, notes, routing, settle

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Interface

    from emulator.devices.host import HostSpeed
    from emulator.topology.expand import OneLink, OneNode
    from emulator.topology.graph import Graph, Segment
    from emulator.topology.line import Line
    from emulator.topology.settle import Settled
    from emulator.topology.topology import Topology

#: a segment of more members looks its neighbours up (ARP) instead of holding n x n static entries
STATIC_NEIGHBOURS = 32


def assemble(
    topology: Topology,
    *,
    name: str | None = None,
    time_scale: float | None = None,
    seed: int | None = None,
    host: HostSpeed,
) -> Plan:
    """The Plan of a topology on this host; arguments go before the file's own values.

    Raises TopologyError for what the file says wrongly, UsageError for an argument that cannot be.
    """
    spec, document = topology.spec, topology.document
    scale = spec.time_scale if time_scale is None else time_scale
    _check_arguments(name, scale, seed)
    nodes = expand.nodes(topology)
    links = expand.links(topology, nodes)
    settler = settle.Settler(topology)
    settled = {one.name: settler.settle(one) for one in nodes.values()}
    lines = {one.name: line.settle(one, settled, document) for one in links.values()}
    worth = {
        one.name: _caps(one, settled[one.name], topology, host, scale)
        for one in nodes.values()
        if one.spec.kind == "host"
    }
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
        notes=tuple(notes.of(nodes, settled, worth, lines, host, scale, network.large_segments)),
        source=topology.path,
    )


def _check_arguments(name: str | None, scale: float, seed: int | None) -> None:
    if name is not None and not LAB_NAME.match(name):
        raise UsageError(f"{name!r} is not a lab name", where="--name", fix="use up to 40 of a-z, 0-9 and -")
    if not (isinstance(scale, (int, float)) and math.isfinite(scale) and 0 < scale <= 1000):
        raise UsageError(
            f"a time scale cannot be {scale!r}", where="--time-scale", fix="it must be above 0, at most 1000"
        )
    if seed is not None and seed < 0:
        raise UsageError(f"a seed cannot be {seed}", where="--seed", fix="it must be at least 0")


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


@dataclass(frozen=True)
class _Addressed:
    """An interface of a host or router and the segment that it is on."""

    index: int
    interface: str
    address: IPv4Interface
    segment: Segment


class Network:
    """The graph with addresses, names and routes."""

    def __init__(self, built: Graph) -> None:
        self.graph = built
        self.supernet = addressing.choose_supernet(addressing.host_routes())
        self.networks = addressing.subnets(built.segments, self.supernet)
        self.addresses = addressing.assign(built, self.networks)
        self.names = addressing.interface_names(built)
        self._macs = addressing.port_macs()
        self.routes = routing.Routes(built)
        self.longest = [Delay(value) for value in self.routes.longest_round_trips()]

    @property
    def large_segments(self) -> list[str]:
        """Segments whose neighbours are looked up when first needed."""
        return [segment.name for segment in self.graph.segments if len(segment.members) > STATIC_NEIGHBOURS]

    def at(self, node: str) -> list[_Addressed]:
        """A host's or router's interfaces, in the order of the file's links."""
        return [
            _Addressed(index, self.names[node, index], self.addresses[node, index], self.graph.segment_at[node, index])
            for index in self.graph.at[node]
        ]

    def primary(self, node: str) -> IPv4Address:
        """The address in the hosts file: that of the first interface."""
        return self.addresses[node, self.graph.at[node][0]].ip

    def interfaces(self, node: str) -> tuple[InterfacePlan, ...]:
        """A node's interfaces as the Plan has them."""
        edges = self.graph.edges
        if self.graph.kinds[node] == "switch":
            return tuple(
                InterfacePlan(self.names[node, i], edges[i].name, next(self._macs), None, edges[i].mtu)
                for i in self.graph.at[node]
            )
        return tuple(
            InterfacePlan(
                name=own.interface,
                link=edges[own.index].name,
                mac=addressing.mac_of(own.address.ip),
                address=own.address,
                mtu=edges[own.index].mtu,
                neighbours=self._neighbours(node, own.segment),
            )
            for own in self.at(node)
        )

    def _neighbours(self, node: str, segment: Segment) -> tuple[Neighbour, ...]:
        if len(segment.members) > STATIC_NEIGHBOURS:
            members = {peer for peer in segment.members if self.graph.passes(peer)}
        else:
            members = set(segment.members)
        known = self._entries[segment.name]
        return tuple(known[peer] for peer in segment.members if peer in members and peer != node)

    @cached_property
    def _entries(self) -> dict[str, dict[str, Neighbour]]:
        result = {}
        for segment in self.graph.segments:
            ips = {peer: self.addresses[peer, index].ip for peer, index in segment.members.items()}
            result[segment.name] = {peer: Neighbour(ip, addressing.mac_of(ip)) for peer, ip in ips.items()}
        return result

    def route_table(self, node: str) -> tuple[RoutePlan, ...]:
        """A host's or router's static routes: one for the whole lab where there is but one way out."""
        own = self.at(node)
        if len(own) != 1 or self.graph.passes(node):
            return tuple(self._full_table(node, own))
        others = [peer for peer in own[0].segment.members if peer != node]
        routers = [peer for peer in others if self.graph.passes(peer)]
        # Elsewhere than in a tree, a neighbour with a second line may be reached sooner by that one.
        detours = any(len(self.graph.at[peer]) > 1 for peer in others if peer not in routers)
        if len(routers) > 1 or (detours and not self.graph.is_tree):
            return tuple(self._full_table(node, own))
        vias = [self.addresses[router, own[0].segment.members[router]].ip for router in routers]
        return tuple(RoutePlan(self.supernet, via, own[0].interface) for via in vias)

    def _full_table(self, node: str, own: list[_Addressed]) -> list[RoutePlan]:
        attached = {one.segment.name for one in own}
        wanted: dict[str, Counter[tuple[IPv4Address, str]]] = {}
        single: dict[IPv4Address, tuple[str, tuple[IPv4Address, str]]] = {}
        for target, hop in self.routes.from_(node).items():
            segment = self.graph.segment_at[node, hop.edge]
            via = (self.addresses[hop.via, segment.members[hop.via]].ip, self.names[node, hop.edge])
            for index in self.graph.at[target]:
                address, there = self.addresses[target, index].ip, self.graph.segment_at[target, index].name
                if via[0] == address:
                    continue
                single[address] = (there, via)
                if there not in attached:
                    wanted.setdefault(there, Counter())[via] += 1
        best = {self.networks[name]: votes.most_common(1)[0][0] for name, votes in wanted.items()}
        exceptions = {
            IPv4Network(address): via
            for address, (there, via) in single.items()
            if best.get(self.networks[there]) != via
        }
        return [*_aggregate(best, self.supernet), *(RoutePlan(net, *via) for net, via in sorted(exceptions.items()))]


def _aggregate(best: dict[IPv4Network, tuple[IPv4Address, str]], supernet: IPv4Network) -> list[RoutePlan]:
    """Few routes of the same meaning: the commonest way out takes the whole lab, the others their own subnets."""
    from ipaddress import collapse_addresses

    if not best:
        return []
    ways: dict[tuple[IPv4Address, str], list[IPv4Network]] = {}
    for network, via in best.items():
        ways.setdefault(via, []).append(network)
    common = max(ways, key=lambda via: len(ways[via]))
    routes = [RoutePlan(supernet, *common)] if len(ways[common]) > 1 else [RoutePlan(ways[common][0], *common)]
    for via, networks in ways.items():
        if via != common:
            routes += [RoutePlan(network, *via) for network in collapse_addresses(networks)]
    return routes


def _caps(one: OneNode, settled: Settled, topology: Topology, host: HostSpeed, scale: float) -> Caps:
    values, steps = settled.values, settled.steps
    try:
        device = profile(values.get("device", UNLIMITED))
    except TopologyError as error:
        where = topology.document.where(*steps.get("device", one.steps))
        raise TopologyError(error.what, where=where, fix=error.fix) from None
    try:
        return caps(device, host, scale, values.get("cpus"), values.get("memory"))
    except TopologyError as error:
        key = "cpus" if "core" in error.what else "memory"
        where = topology.document.where(*steps.get(key, steps.get("device", one.steps)))
        raise TopologyError(f"node {one.name!r}: {error.what}", where=where, fix=error.fix) from None


def _node(one: OneNode, settled: Settled, worth: Caps | None, network: Network) -> NodePlan:
    interfaces = network.interfaces(one.name)
    routes = () if one.spec.kind == "switch" else network.route_table(one.name)
    primary = next((item.address.ip for item in interfaces if item.address), None)
    base: dict[str, Any] = {"group": one.group, "address": primary, "interfaces": interfaces, "routes": routes}
    if worth is None:
        return NodePlan(one.name, one.spec.kind, **base)
    values = settled.values
    command = values.get("command", ())
    return NodePlan(
        one.name,
        device=values.get("device", UNLIMITED),
        role=values.get("role", ""),
        cpus=worth.cpus,
        host_cpus=worth.host_cpus,
        threads=worth.threads,
        memory=worth.memory,
        pids=values.get("pids", NodePlan.pids),
        gflops=worth.gflops,
        command=tuple(shlex.split(command)) if isinstance(command, str) else tuple(command),
        restart=values.get("restart", "no"),
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
