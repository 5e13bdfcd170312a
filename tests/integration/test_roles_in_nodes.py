"""Roles inside the nodes of a real lab: where they are, what they may, and that they end with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.errors import TrainingError
from emulator.core.marks import control_group
from emulator.core.record import read
from emulator.lab import Lab
from emulator.training.launch import run_roles
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.zygote import Zygote

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay")
TOYS = Path(__file__).parent.parent / "toy_roles.py"
WORKLOAD = Workload(model="softmax", dataset="synthetic-mnist")
TOPOLOGY = """
name: NAME
nodes:
  server: {device: rpi-4, role: parameter_server}
  worker: {device: rpi-4, role: worker, count: 2}
  hub: {kind: switch}
links:
  - {from: "*", to: hub, rate: 50 Mbit, delay: 5 ms}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    path = tmp_path_factory.mktemp("lab") / "topology.yaml"
    path.write_text(TOPOLOGY.replace("NAME", f"roles-{os.getpid()}"))
    with Lab.from_file(str(path)) as up:
        yield up


def _specs(lab: Lab, role: str) -> list[RoleSpec]:
    machines = lab.plan.machines
    return [
        RoleSpec(
            node=node.name,
            role=f"{TOYS}:{role}",
            workload=WORKLOAD,
            variant=Variant("toy"),
            server="server",
            workers=tuple(other.name for other in machines if other.name != "server"),
            threads=node.threads,
            addresses=tuple((other.name, str(other.address)) for other in machines),
        )
        for node in machines
    ]


def test_roles_are_in_their_nodes(lab: Lab, tmp_path: Path) -> None:
    with Zygote(WORKLOAD, lab.id) as zygote:
        zygote.wait_ready()
        members = (control_group(lab.id) / "cgroup.procs").read_text().split()
        assert str(zygote.pid) in members
        tokens = {node.name: lab.enter(node.name) for node in lab.plan.machines}
        outcome = run_roles(zygote, tokens, _specs(lab, "where"), tmp_path)
    assert {code for code, _ in (outcome.exits[node] for node in tokens)} == {0}
    for node in lab.plan.machines:
        (saw,) = [item for item in read(tmp_path / f"{node.name}.jsonl") if item["kind"] == "saw"]
        assert saw["hostname"] == node.name
        # pid 1, this role, and nobody else's.
        assert saw["processes"] == 2
        assert 1 < saw["pid"] < 100
        assert saw["no_new_privs"] == "1"
        assert not saw["admin"]
        assert saw["environment"] == [node.name, str(node.threads)]
        assert saw["interfaces"] == sorted(interface.name for interface in node.interfaces)


def test_roles_in_nodes_die_with_the_warmed_process(lab: Lab, tmp_path: Path) -> None:
    with Zygote(WORKLOAD, lab.id) as zygote:
        tokens = {node.name: lab.enter(node.name) for node in lab.plan.machines}

        seen: list[dict[str, int]] = []

        def kill(t: float) -> None:
            if t > 1.0:
                seen.append(_pids(lab))
                os.kill(zygote.pid, signal.SIGKILL)

        with pytest.raises(TrainingError, match="the warmed training process has ended"):
            run_roles(zygote, tokens, _specs(lab, "stubborn"), tmp_path, on_tick=kill)
    assert all(count >= 2 for count in seen[0].values()), "pid 1 and the role"
    deadline = time.monotonic() + 10
    while (left := _pids(lab)) != dict.fromkeys(left, 1):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def _pids(lab: Lab) -> dict[str, int]:
    return {node: usage.pids for node, usage in lab.stats().usage.items()}
