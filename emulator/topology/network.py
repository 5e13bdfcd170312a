"""The graph with addresses, interface names, neighbours and route tables: all of a Plan that is network."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING

from emulator.core.plan import InterfacePlan, Neighbour, RoutePlan
from emulator.core.units import Delay
from emulator.topology import addressing, routing

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Interface

    from emulator.topology.graph import Graph, Segment

#: a segment of more members looks its neighbours up (ARP) instead of holding n x n static entries
STATIC_NEIGHBOURS = 32


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
