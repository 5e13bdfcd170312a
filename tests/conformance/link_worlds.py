"""Worlds to hold a link driver against the contract in: two nodes and one cable, in a kernel or on a virtual clock.

Everything is sent and stamped by this process: a socket belongs to the namespace it was made in, wherever its
process is, and the kernel stamps what it receives, so a late reader does not look like a late packet.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from emulator.core.lab_id import LabId
from emulator.core.linux import CLONE_NEWNET, unshare
from emulator.core.plan import Impairment, InterfacePlan, Neighbour, NodePlan
from emulator.links.base import Cable, CableEnd, CableStatistics, LinkDriver
from emulator.links.fake import FakeDriver
from emulator.links.netns import inside
from emulator.links.network import configure_all

CABLE = "a--b"
MACS = ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
HEADERS = 28  # IPv4 and UDP
PORT = 7000
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PLAIN = Impairment()

Schedule = Sequence[tuple[float, int]]
Actions = Mapping[float, Callable[[], None]]
NO_ACTIONS: Actions = MappingProxyType({})


@dataclass(frozen=True)
class Arrival:
    """A packet that came: its place in the schedule, when it was sent and when it arrived (the same clock)."""

    index: int
    sent: float
    received: float
    size: int

    @property
    def delay(self) -> float:
        return self.received - self.sent


class World(Protocol):
    """`slack` is what a kernel's own time and a busy host may add to a delay, in seconds."""

    driver: LinkDriver
    lab: LabId
    slack: float

    def plug(self, a_to_b: Impairment = PLAIN, b_to_a: Impairment = PLAIN, mtu: int = 1500) -> None: ...

    def exchange(
        self, schedule: Schedule, *, reverse: bool = False, actions: Actions = NO_ACTIONS, copies: bool = False
    ) -> list[Arrival]:
        """Send packets of (time from now, IP bytes) from a to b, or back; what arrived, in order of arrival.

        `copies`: more may come than were sent.
        """
        ...

    def close(self) -> None: ...


def statistics(world: World) -> CableStatistics:
    return world.driver.statistics(world.lab)[CABLE]


def change(world: World, a_to_b: Impairment, b_to_a: Impairment = PLAIN) -> None:
    world.driver.change(world.lab, CABLE, a_to_b, b_to_a)


def ends(netns: Sequence[str]) -> tuple[CableEnd, CableEnd]:
    return CableEnd("a", netns[0], "eth0", MACS[0]), CableEnd("b", netns[1], "eth0", MACS[1])


def no_journal(_kind: str, _name: str) -> None:
    return None


class FakeWorld:
    """The fake driver on its own clock: every figure is exact."""

    slack = 1e-9

    def __init__(self, name: str) -> None:
        self.driver = FakeDriver()
        self.lab = LabId.of(name)

    def plug(self, a_to_b: Impairment = PLAIN, b_to_a: Impairment = PLAIN, mtu: int = 1500) -> None:
        self.driver.plug(self.lab, [Cable(CABLE, *ends(["a", "b"]), a_to_b, b_to_a, mtu)], no_journal)

    def exchange(
        self, schedule: Schedule, *, reverse: bool = False, actions: Actions = NO_ACTIONS, copies: bool = False
    ) -> list[Arrival]:
        start = self.driver.now
        lane = self.driver.lanes(self.lab, CABLE)[int(reverse)]
        todo: list[tuple[float, int, int]] = [(at, -1, 0) for at in actions]
        todo += [(at, index, size) for index, (at, size) in enumerate(schedule)]
        for at, index, size in sorted(todo):
            self.driver.now = start + at
            if index < 0:
                actions[at]()
            else:
                lane.send(self.driver.now, str(index).encode(), size)
        self.driver.now += 3600
        arrived = lane.deliver(self.driver.now)
        return [
            Arrival(int(text), start + schedule[int(text)][0], received, schedule[int(text)][1])
            for received, text in arrived
        ]

    def close(self) -> None:
        self.driver.unplug(self.lab)


class Namespace:
    """A network namespace of this process's own, alive while it is open."""

    def __init__(self) -> None:
        self._fd = -1
        thread = threading.Thread(target=self._make)
        thread.start()
        thread.join()
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"

    def _make(self) -> None:
        unshare(CLONE_NEWNET)
        self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)


class KernelWorld:
    """A driver with a kernel: two namespaces, UDP, and the kernel's receive stamps."""

    def __init__(self, driver: LinkDriver, name: str, slack: float) -> None:
        self.driver = driver
        self.lab = LabId.of(name)
        self.lab.directory.mkdir(parents=True)
        self.slack = slack
        self.namespaces = [Namespace(), Namespace()]
        self.paths = [namespace.path for namespace in self.namespaces]
        self._sockets: list[socket.socket] = []

    def plug(self, a_to_b: Impairment = PLAIN, b_to_a: Impairment = PLAIN, mtu: int = 1500) -> None:
        self.driver.plug(self.lab, [Cable(CABLE, *ends(self.paths), a_to_b, b_to_a, mtu)], no_journal)
        configure_all([(path, node(side, mtu)) for side, path in enumerate(self.paths)])
        self._sockets = [self.udp(path) for path in self.paths]

    def udp(self, path: str) -> socket.socket:
        with inside(path):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("0.0.0.0", PORT))
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        sock.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: never fragment
        return sock

    def exchange(
        self, schedule: Schedule, *, reverse: bool = False, actions: Actions = NO_ACTIONS, copies: bool = False
    ) -> list[Arrival]:
        sender, receiver = self._sockets[:: -1 if reverse else 1]
        target = (str(address(0 if reverse else 1)), PORT)
        start = time.monotonic()
        todo: list[tuple[float, int, int]] = [(at, -1, 0) for at in actions]
        todo += [(at, index, size) for index, (at, size) in enumerate(schedule)]
        sent: dict[int, float] = {}
        arrived: list[Arrival] = []
        for at, index, size in sorted(todo):
            while (left := start + at - time.monotonic()) > 0:
                self._receive(receiver, arrived, schedule, sent, left)
            if index < 0:
                actions[at]()
                continue
            sent[index] = time.clock_gettime(time.CLOCK_REALTIME)
            sender.sendto(struct.pack("=I", index).ljust(size - HEADERS, b"\0"), target)
        # Nobody says that the last packet was the last: wait as long as any delay here may be.
        quiet = time.monotonic() + 0.6 + 10 * self.slack
        while time.monotonic() < quiet and (copies or len(arrived) < len(schedule)):
            if self._receive(receiver, arrived, schedule, sent, 0.05):
                quiet = time.monotonic() + 0.6 + 10 * self.slack
        return arrived

    def _receive(
        self, sock: socket.socket, arrived: list[Arrival], schedule: Schedule, sent: Mapping[int, float], wait: float
    ) -> bool:
        if not select.select([sock], [], [], wait)[0]:
            return False
        while True:
            try:
                data, control, _, _ = sock.recvmsg(65536, 64)
            except BlockingIOError:
                return True
            seconds, nanoseconds = struct.unpack("=qq", control[0][2][:16])
            index = struct.unpack_from("=I", data)[0]
            received = seconds + nanoseconds / 1e9
            arrived.append(Arrival(index, sent[index], received, len(data) + HEADERS))

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()
        self.driver.unplug(self.lab)
        for namespace in self.namespaces:
            namespace.close()


def address(side: int) -> IPv4Address:
    return IPv4Address("10.77.0.1") + side


def node(side: int, mtu: int = 1500) -> NodePlan:
    """Node a or b with its one interface, all of it static."""
    port = InterfacePlan(
        "eth0",
        CABLE,
        MACS[side],
        IPv4Interface(f"{address(side)}/30"),
        mtu,
        (Neighbour(address(1 - side), MACS[1 - side]),),
    )
    return NodePlan("ab"[side], interfaces=(port,), address=address(side))


def interfaces(path: str) -> list[str]:
    """The interfaces in a namespace."""
    with inside(path):
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
    return [line.split(":")[0].strip() for line in lines]


def make_world(kind: str, name: str) -> World:
    """A world of that driver. EMU_SLACK_MS widens the margins of time, for an emulated processor."""
    if kind == "fake":
        return FakeWorld(name)
    from emulator.links import driver

    return KernelWorld(driver(kind), name, float(os.environ.get("EMU_SLACK_MS", "1.5")) / 1000)
