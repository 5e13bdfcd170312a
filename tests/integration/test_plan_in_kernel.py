"""What the kernel holds is what the Plan says, read by pyroute2: a decoder that shares no code with ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

import pytest
from pyroute2 import IPRoute

from emulator.core.plan import NodePlan
from emulator.lab import Lab
from emulator.links.netns import inside
from emulator.topology import load_plan

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay")
PERMANENT = 0x80


CONTAINERS = pytest.param(("two-sites", "docker"), marks=pytest.mark.needs("docker"), id="docker")


@pytest.fixture(scope="module", params=[("two-sites", "embedded"), ("wan-10", "embedded"), CONTAINERS])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    topology, runtime = request.param
    plan = load_plan(f"topologies/{topology}.yaml", name=f"kern-{os.getpid()}")
    if runtime == "docker":  # none of these nodes trains
        plan = replace(plan, nodes=tuple(replace(node, role="") for node in plan.nodes))
    with Lab.from_plan(plan, runtime=runtime) as lab:
        yield lab


def _read(lab: Lab, node: NodePlan) -> dict[str, Any]:
    path = dict(lab.enter(node.name).namespaces)["net"]
    with inside(path), IPRoute() as ip:
        names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in ip.get_links()}
        return {
            "links": {
                link.get_attr("IFLA_IFNAME"): (link.get_attr("IFLA_ADDRESS"), link.get_attr("IFLA_MTU"), link["state"])
                for link in ip.get_links()
            },
            "addresses": {
                names[item["index"]]: IPv4Interface(f"{item.get_attr('IFA_ADDRESS')}/{item['prefixlen']}")
                for item in ip.get_addr(family=2)
            },
            "routes": {
                (
                    IPv4Network(f"{route.get_attr('RTA_DST') or '0.0.0.0'}/{route['dst_len']}"),
                    route.get_attr("RTA_GATEWAY"),
                    names[route.get_attr("RTA_OIF")],
                )
                for route in ip.get_routes(family=2, table=254)
                if route.get_attr("RTA_GATEWAY")
            },
            "neighbours": {
                (item.get_attr("NDA_DST"), item.get_attr("NDA_LLADDR"), names[item["ifindex"]])
                for item in ip.get_neighbours(family=2)
                if item["state"] & PERMANENT
            },
        }


def test_interfaces_addresses_routes_and_neighbours(lab: Lab) -> None:
    for node in lab.plan.machines:
        found = _read(lab, node)
        for port in node.interfaces:
            assert found["links"][port.name] == (port.mac, port.mtu, "up"), node.name
            assert found["addresses"][port.name] == port.address, node.name
        assert set(found["links"]) == {"lo", *(port.name for port in node.interfaces)}
        assert found["routes"] == {(route.destination, str(route.via), route.interface) for route in node.routes}, (
            node.name
        )
        assert found["neighbours"] == {
            (str(neighbour.address), neighbour.mac, port.name)
            for port in node.interfaces
            for neighbour in port.neighbours
        }, node.name
