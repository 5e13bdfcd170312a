"""Small Plans for tests of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from emulator.core.plan import Endpoint, Impairment, LinkPlan, NodePlan, Plan
from emulator.core.units import Delay, Rate, Share
from emulator.training.spec import RoleSpec, Variant, Workload


def line(mbit: float | None = None, ms: float = 0.0, jitter_ms: float = 0.0, loss: float = 0.0) -> Impairment:
    rate = None if mbit is None else Rate(mbit * 1e6)
    return Impairment(rate, Delay(ms / 1e3), Delay(jitter_ms / 1e3), Share(loss))


def cable(a: str, b: str, there: Impairment, back: Impairment | None = None) -> LinkPlan:
    return LinkPlan(f"{a}--{b}", Endpoint(a, b), Endpoint(b, a), there, back or there)


def star(lines: Mapping[str, Impairment], gflops: float = 1.0, seed: int = 0) -> Plan:
    """Hosts around a router; the same line both ways."""
    nodes = [NodePlan(name, gflops=gflops) for name in lines]
    links = [cable(name, "hub", impairment) for name, impairment in lines.items()]
    return Plan("star", (*nodes, NodePlan("hub", kind="router")), tuple(links), seed=seed)


def specs(roles: Mapping[str, str], **changes: object) -> list[RoleSpec]:
    """One RoleSpec a node; whoever is not called server counts as a worker."""
    workers = tuple(name for name in roles if name != "server")
    given = {"workload": Workload("softmax", "synthetic-mnist"), "variant": Variant("v"), **changes}
    return [
        RoleSpec(node=name, role=role, server="server", workers=workers, index=max(0, index - 1), **given)  # type: ignore[arg-type]
        for index, (name, role) in enumerate(roles.items())
    ]


def in_file(path: Path, text: str) -> Path:
    """A file of roles."""
    head = "from emulator.training.context import Lost, TimedOut\nfrom emulator.training.message import Message\n"
    path.write_text("import numpy as np\n" + head + text)
    return path
