"""A lab of one runtime alone, as the tests of runtimes use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

from emulator.core.clock import RealClock
from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.core.units import Share, Size
from emulator.runtimes.base import Command


def machine(name: str, **changes: Any) -> NodePlan:
    fields: dict[str, Any] = {"host_cpus": Share(0.5), "memory": Size(256 << 20), "pids": 64, "threads": 2}
    return NodePlan(name, **fields | changes)


@dataclass
class World:
    """A runtime with one lab of two machines, a switch and a router."""

    runtime: Any
    lab: LabId
    plan: Plan
    journal: list[tuple[str, str]] = field(default_factory=list)

    def create(self) -> Any:
        return self.runtime.create(self.lab, self.plan, self.plan.nodes, self._note)

    def _note(self, kind: str, name: str) -> None:
        self.journal.append((kind, name))

    def run(self, node: str, argv: Sequence[str], **options: Any) -> tuple[int, str]:
        read, write = os.pipe()
        try:
            process = self.runtime.start(self.lab, node, Command(tuple(argv), stdout=write, **options))
        finally:
            os.close(write)
        with os.fdopen(read) as stream:
            text = stream.read()
        return process.wait(30), text


def plan_of(name: str, **changes: Any) -> Plan:
    nodes = (
        machine("alpha", env=(("GREETING", "hello"),), address=IPv4Address("10.0.0.1"), **changes),
        machine("beta", address=IPv4Address("10.0.0.2")),
        NodePlan("core", kind="router"),
        NodePlan("lan", kind="switch"),
    )
    hosts = tuple((node.name, node.address) for node in nodes if node.address)
    return Plan(name, nodes, (), time_scale=0.5, hosts=hosts)


def make_runtime(name: str) -> Any:
    from emulator.runtimes import choose

    return choose(name)


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    clock = RealClock()
    deadline = clock.now() + seconds
    while clock.now() < deadline:
        if condition():
            return True
        clock.sleep(0.02)
    return bool(condition())
