"""A network of bare namespaces, without a runtime: what links alone make of a Plan; and a TCP flow, seen closely."""

from __future__ import annotations

import math
import os
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from emulator.core.lab_id import LabId
from emulator.core.plan import (
    Endpoint,
    Impairment,
    InterfacePlan,
    LinkPlan,
    Neighbour,
    NodeKind,
    NodePlan,
    Plan,
    RoutePlan,
)
from emulator.lab.make import cables
from emulator.links.base import LinkDriver
from emulator.links.netns import inside
from emulator.links.network import configure_all
from emulator.runtimes.base import NodeHandle
from tests.conformance.link_worlds import SO_TIMESTAMPNS, Namespace, no_journal

ETH_P_IP = 0x0800


class BareLab:
    """The Plan's nodes as namespaces, its links by the driver; `pids` are nodes' first processes. Close it."""

    def __init__(self, plan: Plan, driver: LinkDriver, pids: Mapping[str, int] | None = None) -> None:
        self.plan, self.driver = plan, driver
        self.lab = LabId.of(plan.name)
        self.lab.directory.mkdir(parents=True)
        self._namespaces = {node.name: Namespace() for node in plan.nodes}
        firsts = pids or {}
        handles = {name: NodeHandle(name, made.path, firsts.get(name)) for name, made in self._namespaces.items()}
        try:
            driver.plug(self.lab, cables(plan, handles), no_journal)
            configure_all([(self.path(node.name), node) for node in plan.nodes])
        except BaseException:
            self.close()
            raise

    def path(self, node: str) -> str:
        return self._namespaces[node].path

    def address(self, node: str) -> str:
        return str(self.plan.node(node).address)

    def close(self) -> None:
        self.driver.unplug(self.lab)
        for namespace in self._namespaces.values():
            namespace.close()


def star(name: str, spokes: Sequence[tuple[Impairment, Impairment]], kind: NodeKind = "router") -> Plan:
    """Hosts h0, h1, ... around one router or switch; each spoke's figures are (from the host, to the host)."""
    macs = [
        (f"02:00:00:01:{i // 256:02x}:{i % 256:02x}", f"02:00:00:02:{i // 256:02x}:{i % 256:02x}")
        for i in range(len(spokes))
    ]
    routed = kind == "router"

    def host_address(i: int) -> IPv4Interface:
        return IPv4Interface(f"10.78.{i}.1/30") if routed else IPv4Interface(f"10.78.{i}.1/16")

    def near(i: int) -> tuple[Neighbour, ...]:
        if routed:
            return (Neighbour(IPv4Address(f"10.78.{i}.2"), macs[i][1]),)
        return tuple(Neighbour(host_address(j).ip, macs[j][0]) for j in range(len(spokes)) if j != i)

    hosts = [
        NodePlan(
            f"h{i}",
            address=host_address(i).ip,
            interfaces=(InterfacePlan("eth0", f"h{i}--core", macs[i][0], host_address(i), neighbours=near(i)),),
            routes=(RoutePlan(IPv4Network("10.78.0.0/16"), IPv4Address(f"10.78.{i}.2"), "eth0"),) if routed else (),
        )
        for i in range(len(spokes))
    ]
    ports = tuple(
        InterfacePlan(
            f"port{i}",
            f"h{i}--core",
            macs[i][1],
            IPv4Interface(f"10.78.{i}.2/30") if routed else None,
            neighbours=(Neighbour(host_address(i).ip, macs[i][0]),) if routed else (),
        )
        for i in range(len(spokes))
    )
    links = tuple(
        LinkPlan(f"h{i}--core", Endpoint(f"h{i}", "eth0"), Endpoint("core", f"port{i}"), out, back)
        for i, (out, back) in enumerate(spokes)
    )
    return Plan(name, (*hosts, NodePlan("core", kind=kind, interfaces=ports)), links)


@dataclass
class Flow:
    """A TCP flow for some seconds: (kernel's receive time, IP bytes) of each frame that reached the receiver."""

    frames: list[tuple[float, int]] = field(default_factory=list)
    largest: int = 0

    def rate(self, skip: float = 0.0) -> float:
        """Mean bit/s of IP bytes, without the first `skip` seconds."""
        start = self.frames[0][0] + skip
        kept = [(at, size) for at, size in self.frames if at >= start]
        return sum(size for _, size in kept[1:]) * 8 / (kept[-1][0] - kept[0][0])

    def busiest_second(self) -> float:
        """The most bits in any window of one second."""
        most = total = first = 0
        for at, size in self.frames:
            total += size
            while self.frames[first][0] <= at - 1.0:
                total -= self.frames[first][1]
                first += 1
            most = max(most, total)
        return most * 8.0


def tcp_flow(lab: BareLab, source: str, target: str, seconds: float, mtu: int = 1500) -> Flow:
    """One TCP flow; what arrives is taken from a packet socket at the receiver, with the kernel's stamps."""
    with inside(lab.path(target)):
        server = socket.create_server((lab.address(target), 7002))
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    tap.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    tap.settimeout(1.5)
    with inside(lab.path(source)):
        client = socket.socket()
    flow = Flow()
    watcher = threading.Thread(target=_watch, args=(tap, flow, mtu - 52))
    watcher.start()
    client.connect((lab.address(target), 7002))
    peer, _ = server.accept()
    drain = threading.Thread(target=_drain, args=(peer,))
    drain.start()
    block, end = bytes(1 << 16), time.monotonic() + seconds
    client.settimeout(30)
    while time.monotonic() < end:
        client.send(block)
    # Abandon what the kernel still holds: a slow line would take long to send it.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    drain.join()
    watcher.join()
    for sock in (server, tap, peer):
        sock.close()
    return flow


def _drain(peer: socket.socket) -> None:
    buffer = bytearray(1 << 18)
    try:
        while peer.recv_into(buffer):
            pass
    except ConnectionResetError:
        return


def _watch(tap: socket.socket, flow: Flow, segment: int) -> None:
    """Until nothing has come for a while. A super-packet counts as the packets that it stands for."""
    while True:
        try:
            head, control, _, sender = tap.recvmsg(40, 64)
        except TimeoutError:
            return
        if sender[2] == socket.PACKET_OUTGOING or head[9] != socket.IPPROTO_TCP:
            continue
        length = struct.unpack_from("!H", head, 2)[0]
        seconds, nanoseconds = struct.unpack("=qq", control[0][2][:16])
        packets = max(1, math.ceil((length - 52) / segment))
        flow.largest = max(flow.largest, packets)
        flow.frames.append((seconds + nanoseconds / 1e9, length + 52 * (packets - 1)))


def unique(stem: str) -> str:
    """A lab name that no other run has."""
    return f"{stem}-{os.getpid()}-{time.monotonic_ns() % 100_000}"
