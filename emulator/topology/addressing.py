"""Subnets, addresses, MACs and interface names; all follow from the file's order, so the same file gives the same."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from emulator.topology.graph import Graph, Segment

MAX_INTERFACE = 15


def host_routes(path: Path = Path("/proc/net/route")) -> list[IPv4Network]:
    """The networks that this host routes to, without its default route; none where the kernel shows none."""
    try:
        rows = path.read_text().splitlines()[1:]
    except OSError:
        return []
    networks = []
    for row in rows:
        fields = row.split()
        address, mask = (int.from_bytes(bytes.fromhex(fields[column]), "little") for column in (1, 7))
        if mask:
            networks.append(IPv4Network((address, mask.bit_count()), strict=False))
    return networks


def choose_supernet(taken: Iterable[IPv4Network]) -> IPv4Network:
    """The first private /16 that overlaps none of `taken`, beginning at 10.77.0.0/16.

    Labs live in namespaces of their own, so this only keeps a reader of addresses from mistaking one for another.
    """
    used = list(taken)
    candidates = [f"10.{n}.0.0/16" for n in (*range(77, 256), *range(77))] + [f"172.{n}.0.0/16" for n in range(16, 32)]
    for text in candidates:
        network = IPv4Network(text)
        if not any(network.overlaps(other) for other in used):
            return network
    raise TopologyError(
        "this host routes to every private /16 network", where="/proc/net/route", fix="remove a route to 10.0.0.0/8"
    )


def subnets(segments: Sequence[Segment], supernet: IPv4Network) -> dict[str, IPv4Network]:
    """A subnet for each segment by its name: the smallest that fits, the largest first, so that none is wasted."""
    result: dict[str, IPv4Network] = {}
    position, end = int(supernet.network_address), int(supernet.broadcast_address) + 1
    for segment in sorted(segments, key=lambda item: -_bits(item)):
        size = 1 << _bits(segment)
        if position + size > end:
            raise TopologyError(
                "the cluster needs more addresses than a /16 network has", fix="use fewer nodes or links"
            )
        result[segment.name] = IPv4Network((position, 32 - _bits(segment)))
        position += size
    return result


def _bits(segment: Segment) -> int:
    """Host bits for the members, the network's and the broadcast address."""
    return max(2, (len(segment.members) + 1).bit_length())


def assign(graph: Graph, networks: dict[str, IPv4Network]) -> dict[tuple[str, int], IPv4Interface]:
    """(node, cable) -> its address; routers come first in a segment, then the order of the file."""
    addresses: dict[tuple[str, int], IPv4Interface] = {}
    for segment in graph.segments:
        network = networks[segment.name]
        first, length = int(network.network_address), network.prefixlen
        for offset, node in enumerate(sorted(segment.members, key=lambda name: not graph.passes(name)), 1):
            addresses[node, segment.members[node]] = IPv4Interface((first + offset, length))
    return addresses


def mac_of(address: IPv4Address) -> str:
    """A locally administered MAC that shows the address: 02:00 and its four bytes."""
    return "02:00:" + address.packed.hex(":")


def port_macs() -> Iterator[str]:
    """MACs for switch ports, which have no address: 02:01 and a counter."""
    for number in range(1, 1 << 32):
        yield "02:01:" + number.to_bytes(4, "big").hex(":")


def interface_names(graph: Graph) -> dict[tuple[str, int], str]:
    """(node, cable) -> interface name: eth0, eth1, ... on hosts, to-PEER (shortened where needed) elsewhere."""
    names: dict[tuple[str, int], str] = {}
    for node, cables in graph.at.items():
        used: set[str] = set()
        for position, index in enumerate(cables):
            name = f"eth{position}" if graph.kinds[node] == "host" else _port(graph.edges[index].other(node), used)
            used.add(name)
            names[node, index] = name
    return names


def _port(peer: str, used: set[str]) -> str:
    """to-PEER; a long or repeated one keeps its beginning and ends in four hex digits of a hash."""
    import hashlib

    name, attempt = f"to-{peer}", 0
    while len(name) > MAX_INTERFACE or name in used:
        digest = hashlib.sha256(f"{peer}/{attempt}".encode()).hexdigest()[:4]
        name, attempt = f"to-{peer[: MAX_INTERFACE - 8]}-{digest}", attempt + 1
    return name
