"""Resolution: on any cluster that is accepted, packets arrive without loops and nothing is named or numbered twice."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.core.errors import TopologyError
from emulator.core.plan import Plan
from emulator.core.units import Size
from emulator.core.yaml_file import Document
from emulator.devices.host import HostSpeed
from emulator.topology import resolve
from emulator.topology.paths import Paths
from emulator.topology.topology import check

HOST = HostSpeed(gflops=80.0, cores=4, memory=Size(16 * 2**30))
DELAYS = st.sampled_from(["0 ms", "1 ms", "5 ms", "20 ms"])
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,12}){0,3}", fullmatch=True)


def plan_of(data: dict[str, Any]) -> Plan:
    return resolve(check(Document("random.yaml", data)), host=HOST)


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """Routers in a connected graph with rings, switches on some, hosts on either, some hosts with two lines."""
    routers = [f"r{n}" for n in range(draw(st.integers(1, 4)))]
    switches = [f"a-switch-in-the-hall-{n}" for n in range(draw(st.integers(0, 2)))]
    hosts = [f"h{n}" for n in range(draw(st.integers(1, 6)))]
    nodes: dict[str, Any] = {name: {"kind": "router"} for name in routers}
    nodes |= {name: {"kind": "switch"} for name in switches}
    nodes |= {name: {"device": "rpi-4"} for name in hosts}
    pairs: dict[tuple[str, str], None] = {}

    def join(a: str, b: str) -> None:
        if (b, a) not in pairs:
            pairs[a, b] = None

    for index, router in enumerate(routers[1:], 1):
        join(router, draw(st.sampled_from(routers[:index])))
    for switch in switches:
        join(draw(st.sampled_from(routers)), switch)
    for host in hosts:
        places = draw(st.lists(st.sampled_from(routers + switches), min_size=1, max_size=2, unique=True))
        for place in places:
            join(host, place)
    if len(routers) > 2 and draw(st.booleans()):
        join(routers[-1], routers[0])
    links = [{"from": a, "to": b, "up": {"delay": draw(DELAYS)}, "down": {"delay": draw(DELAYS)}} for a, b in pairs]
    return {"nodes": nodes, "links": links}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters())
def test_packets_arrive_on_any_cluster(cluster: dict[str, Any]) -> None:
    plan = plan_of(cluster)
    paths = Paths(plan)
    ends = [node for node in plan.nodes if node.kind != "switch"]
    for start in ends:
        for end in ends:
            for interface in end.interfaces:
                if start != end:
                    assert interface.address
                    steps = paths.between(start.name, end.name, interface.address.ip)
                    assert steps[-1].end == end.name
    _check_names(plan)
    assert Plan.from_json(plan.to_json()) == plan


def _check_names(plan: Plan) -> None:
    addresses = [item.address.ip for node in plan.nodes for item in node.interfaces if item.address]
    macs = [item.mac for node in plan.nodes for item in node.interfaces]
    assert len(set(addresses)) == len(addresses)
    assert len(set(macs)) == len(macs)
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs), "locally administered and not multicast"
    for node in plan.nodes:
        names = [item.name for item in node.interfaces]
        assert len(set(names)) == len(names)
        assert all(0 < len(name) <= 15 and "/" not in name and " " not in name for name in names)
    networks = {item.address.network for node in plan.nodes for item in node.interfaces if item.address}
    for one in networks:
        for other in networks:
            assert one == other or not one.overlaps(other)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters())
def test_a_path_is_a_shortest_one(cluster: dict[str, Any]) -> None:
    import networkx as nx

    plan = plan_of(cluster)
    kinds = {node.name: node.kind for node in plan.nodes}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for link in plan.links:
        graph.add_edge(link.a.node, link.b.node, delay=round(link.a_to_b.delay * 1e9))
        graph.add_edge(link.b.node, link.a.node, delay=round(link.b_to_a.delay * 1e9))
    paths = Paths(plan)
    hosts = [name for name, kind in kinds.items() if kind == "host"]
    for start in hosts:
        for end in hosts:
            if start != end:
                open_nodes = [name for name, kind in kinds.items() if kind != "host" or name in (start, end)]
                best = nx.shortest_path_length(graph.subgraph(open_nodes), start, end, weight="delay")
                assert round(paths.one_way(start, end) * 1e9) == best


@given(st.lists(NAMES.filter(lambda name: len(name) > 12), min_size=2, max_size=30, unique=True))
@settings(max_examples=20, deadline=None)
def test_long_names_give_valid_distinct_interfaces(names: list[str]) -> None:
    nodes = {name: {"device": "rpi-4"} for name in names} | {"core": {"kind": "router"}}
    plan = plan_of({"nodes": nodes, "links": [{"from": name, "to": "core"} for name in names]})
    _check_names(plan)


def test_a_full_mesh_of_hosts_needs_no_router() -> None:
    nodes = {f"h{n}": {"device": "rpi-4"} for n in range(5)}
    plan = plan_of({"nodes": nodes, "links": [{"from": "h*", "to": "h*", "delay": "3 ms"}]})
    assert len(plan.links) == 10
    paths = Paths(plan)
    assert all(len(paths.between(a, b)) == 1 for a in nodes for b in nodes if a != b)


def test_the_supernet_avoids_the_networks_of_the_host() -> None:
    from emulator.topology.addressing import choose_supernet

    assert choose_supernet([]) == IPv4Network("10.77.0.0/16")
    assert choose_supernet([IPv4Network("10.64.0.0/11")]) == IPv4Network("10.96.0.0/16")
    assert choose_supernet([IPv4Network("10.0.0.0/8")]) == IPv4Network("172.16.0.0/16")
    with pytest.raises(TopologyError, match="private /16"):
        choose_supernet([IPv4Network("10.0.0.0/8"), IPv4Network("172.16.0.0/12")])
