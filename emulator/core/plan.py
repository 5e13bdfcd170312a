"""The Plan: a topology with every default, profile, address and route resolved, frozen.

Only a Plan reaches a runtime, a link driver or the simulator. All its rates, delays and times are *emulated*;
`Impairment.scaled` gives what a driver must set on the real kernel. `cpus` are cores of the device,
`host_cpus` cores of this host after calibration and time scale.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Any, Literal

from emulator.core.loss import LossModel
from emulator.core.spread import Spread
from emulator.core.units import Delay, Rate, Share, Size

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1

NodeKind = Literal["host", "switch", "router"]


@dataclass(frozen=True)
class CoDel:
    """A queue that is managed: it drops where packets have waited more than `target` for an `interval` (RFC 8289)."""

    target: Delay = Delay(0.005)
    interval: Delay = Delay(0.1)

    def scaled(self, time_scale: float) -> CoDel:
        """The same queue in real seconds under `time_scale`."""
        return CoDel(Delay(self.target * time_scale), Delay(self.interval * time_scale))


@dataclass(frozen=True)
class Impairment:
    """What one direction of a link does to packets.

    `rate` None = not limited. `delay` is one way. `queue` is the bytes that may wait for the line (packets in
    flight do not count). `overhead` is added to each IP packet's bytes before the rate is applied.

    `spread` is how `jitter` is distributed, None = uniform from -jitter to +jitter. Order is kept, but with `reorder`,
    where each packet arrives after its own delay. `loss` is the share lost in the long run: of independent losses, or
    where `loss_model` says so, of those. `duplicate` of the packets are followed by a copy of themselves on the line;
    `corrupt` arrive with one bit turned over. `early` of those that follow `early_gap` - 1 others skip the delay.
    `queue_packets` bounds the queue in packets beside its bytes. A `cut` line loses everything.
    """

    rate: Rate | None = None
    delay: Delay = Delay(0)
    jitter: Delay = Delay(0)
    loss: Share = Share(0)
    queue: Size = Size(0)
    overhead: int = 0
    spread: Spread | None = None
    reorder: bool = False
    loss_model: LossModel | None = None
    duplicate: Share = Share(0)
    corrupt: Share = Share(0)
    early: Share = Share(0)
    early_gap: int = 1
    queue_packets: int | None = None
    codel: CoDel | None = None
    cut: bool = False

    def scaled(self, time_scale: float) -> Impairment:
        """The same direction in real seconds under `time_scale` (rate / s, times x s; bytes and loss stay)."""
        return replace(
            self,
            rate=None if self.rate is None else Rate(self.rate / time_scale),
            delay=Delay(self.delay * time_scale),
            jitter=Delay(self.jitter * time_scale),
            codel=None if self.codel is None else self.codel.scaled(time_scale),
        )


@dataclass(frozen=True)
class Endpoint:
    """One end of a link: an interface (at most 15 characters) of a node."""

    node: str
    interface: str


@dataclass(frozen=True)
class LinkPlan:
    """A point-to-point cable. `name` is unique in the Plan ("worker-1--core")."""

    name: str
    a: Endpoint
    b: Endpoint
    a_to_b: Impairment
    b_to_a: Impairment
    mtu: int = 1500
    preset: str | None = None
    source: str = ""


@dataclass(frozen=True)
class Neighbour:
    """A static neighbour entry, so that no first packet waits for a look-up."""

    address: IPv4Address
    mac: str


@dataclass(frozen=True)
class InterfacePlan:
    """An interface of a node; `address` is None for a switch port."""

    name: str
    link: str
    mac: str
    address: IPv4Interface | None
    mtu: int = 1500
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True)
class RoutePlan:
    """A static route by way of a directly connected neighbour."""

    destination: IPv4Network
    via: IPv4Address
    interface: str


@dataclass(frozen=True)
class PowerPlan:
    """Watts that a node's device draws when idle and with all of its `cores` busy."""

    idle: float
    loaded: float
    cores: float


@dataclass(frozen=True)
class StoragePlan:
    """What a card carries in an emulated second: bytes in sequence, and operations at random; 0 = not limited."""

    read: float = 0.0
    write: float = 0.0
    read_operations: float = 0.0
    write_operations: float = 0.0

    def scaled(self, time_scale: float) -> StoragePlan:
        """The same card in real seconds under `time_scale`."""
        return StoragePlan(*(value / time_scale for value in astuple(self)))


@dataclass(frozen=True)
class NodePlan:
    """A node with its caps. Switches and routers are namespaces only: device, caps and command are empty there.

    `threads` is what OMP, MKL, OPENBLAS and torch are told. `address` is the node's primary address, the one in
    the hosts file. `restart`: what pid 1 does when `command` ends. `image` and `arch` ("amd64", "arm64") are for
    containers; empty = the runtime's own choice. `cpu_model` is the device's core as QEMU names it. `host_cpus` is the
    cap; `native_cpus` is set where the node's programs are for another processor than the host's, which emulates it:
    the host cores that the device is worth in the host's own programs, while the cap is only for the emulating one.
    `power` is None where the device's watts are not known.
    `machine` is what the device calls itself and `clock` its own, in Hz, for programs that ask ("" and 0 = they see the
    host's); `worth` is what a second of CPU time under its cap is worth beside one without (`devices.delivery`).
    `storage` is its card, None where it has the host's.
    """

    name: str
    kind: NodeKind = "host"
    device: str = ""
    role: str = ""
    group: str = ""
    cpus: Share = Share(0)
    host_cpus: Share = Share(0)
    native_cpus: Share | None = None
    threads: int = 1
    memory: Size = Size(0)
    pids: int = 4096
    gflops: float = 0.0
    command: tuple[str, ...] = ()
    restart: Literal["no", "on-failure", "always"] = "no"
    env: tuple[tuple[str, str], ...] = ()
    image: str = ""
    arch: str = ""
    cpu_model: str = ""
    power: PowerPlan | None = None
    machine: str = ""
    clock: float = 0.0
    worth: float = 1.0
    storage: StoragePlan | None = None
    address: IPv4Address | None = None
    interfaces: tuple[InterfacePlan, ...] = ()
    routes: tuple[RoutePlan, ...] = ()

    @property
    def quota(self) -> float:
        """Host cores of CPU time that it is given, so that it gets the work of `host_cpus`."""
        return float(self.host_cpus) / self.worth

    @property
    def foreign(self) -> bool:
        """Whether its programs are for another processor than the host's."""
        return self.native_cpus is not None

    @property
    def step_cpus(self) -> float:
        """Host cores at which one step takes as long as on the device: no more than its threads can use."""
        if self.native_cpus is not None:
            return float(self.native_cpus)
        return min(float(self.host_cpus), float(self.threads)) or 1.0


@dataclass(frozen=True)
class Plan:
    """A whole cluster, ready to be made. `hosts` is the hosts file; `notes` are assumptions to print and record."""

    name: str
    nodes: tuple[NodePlan, ...]
    links: tuple[LinkPlan, ...]
    time_scale: float = 1.0
    seed: int = 0
    hosts: tuple[tuple[str, IPv4Address], ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    version: int = field(default=VERSION)

    def node(self, name: str) -> NodePlan:
        """The node of that name; raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def link(self, name: str) -> LinkPlan:
        """The link of that name; raises KeyError."""
        for link in self.links:
            if link.name == name:
                return link
        raise KeyError(name)

    @property
    def machines(self) -> tuple[NodePlan, ...]:
        """The nodes that run programs, without switches and routers."""
        return tuple(node for node in self.nodes if node.kind == "host")

    def to_json(self) -> str:
        """A JSON text which `from_json` reads back to an equal Plan; numbers are in base units."""
        return json.dumps(asdict(self), default=str, indent=1)

    @staticmethod
    def from_json(text: str) -> Plan:
        """Read a Plan; raises ValueError for another version."""
        raw = json.loads(text)
        if raw.get("version") != VERSION:
            raise ValueError(f"Plan version {raw.get('version')!r} is not known (this emu reads {VERSION})")
        return Plan(
            name=raw["name"],
            nodes=tuple(_node(item) for item in raw["nodes"]),
            links=tuple(_link(item) for item in raw["links"]),
            time_scale=raw["time_scale"],
            seed=raw["seed"],
            hosts=tuple((name, IPv4Address(address)) for name, address in raw["hosts"]),
            notes=tuple(raw["notes"]),
            source=raw["source"],
        )


def impairment_from(raw: dict[str, Any]) -> Impairment:
    """Read back what `asdict` made of an Impairment; what is left out is as where a file says nothing of it."""
    read: dict[str, Callable[[Any], Any]] = {
        "rate": Rate,
        "delay": Delay,
        "jitter": Delay,
        "loss": Share,
        "queue": Size,
        "spread": lambda value: Spread(value["name"], tuple(value["samples"]), value["correlation"]),
        "loss_model": lambda value: LossModel(value["kind"], tuple(value["parameters"])),
        "duplicate": Share,
        "corrupt": Share,
        "early": Share,
        "codel": lambda value: CoDel(Delay(value["target"]), Delay(value["interval"])),
    }
    return Impairment(
        **{key: read[key](value) if key in read and value is not None else value for key, value in raw.items()}
    )


def _link(raw: dict[str, Any]) -> LinkPlan:
    return LinkPlan(
        **raw
        | {
            "a": Endpoint(**raw["a"]),
            "b": Endpoint(**raw["b"]),
            "a_to_b": impairment_from(raw["a_to_b"]),
            "b_to_a": impairment_from(raw["b_to_a"]),
        }
    )


def _interface(raw: dict[str, Any]) -> InterfacePlan:
    return InterfacePlan(
        **raw
        | {
            "address": None if raw["address"] is None else IPv4Interface(raw["address"]),
            "neighbours": tuple(Neighbour(IPv4Address(n["address"]), n["mac"]) for n in raw["neighbours"]),
        }
    )


def _route(raw: dict[str, Any]) -> RoutePlan:
    return RoutePlan(IPv4Network(raw["destination"]), IPv4Address(raw["via"]), raw["interface"])


def _node(raw: dict[str, Any]) -> NodePlan:
    return NodePlan(
        **raw
        | {
            "cpus": Share(raw["cpus"]),
            "host_cpus": Share(raw["host_cpus"]),
            "native_cpus": None if raw.get("native_cpus") is None else Share(raw["native_cpus"]),
            "memory": Size(raw["memory"]),
            "power": None if raw.get("power") is None else PowerPlan(**raw["power"]),
            "storage": StoragePlan(**raw["storage"]) if raw.get("storage") else None,
            "command": tuple(raw["command"]),
            "env": tuple((key, value) for key, value in raw["env"]),
            "address": None if raw["address"] is None else IPv4Address(raw["address"]),
            "interfaces": tuple(_interface(item) for item in raw["interfaces"]),
            "routes": tuple(_route(item) for item in raw["routes"]),
        }
    )
