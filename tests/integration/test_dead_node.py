"""A node whose first process has ended: silent to the others, as a board without power, and told once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.lab import Lab
from emulator.lab.status import report
from emulator.runtimes import state
from tests.integration.traces import emu
from tests.runtime_world import eventually

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
RUNTIMES = ["embedded", pytest.param("docker", marks=pytest.mark.needs("docker"))]
DRIVERS = [
    pytest.param("relay", marks=pytest.mark.needs("tun")),
    pytest.param("netem", marks=pytest.mark.needs("netem")),
]
TOPOLOGY = """
nodes:
  server: {cpus: 0.5, memory: 128 MiB}
  worker: {cpus: 0.5, memory: 128 MiB, count: 2}
  hub: {kind: switch}
links:
  - {from: "*", to: hub, rate: 50 Mbit, delay: 5 ms}
"""


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=RUNTIMES)
def lab(request: pytest.FixtureRequest, driver: str, tmp_path: Path) -> Iterator[Lab]:
    name = f"dn-{os.getpid()}-{driver}-{request.param}"
    path = tmp_path / f"{name}.yaml"
    path.write_text(f"name: {name}\n{TOPOLOGY}")
    made = Lab.from_file(path, runtime=request.param, link_driver=driver)
    made.up()
    yield made
    made.down()


def answers(lab: Lab, node: str) -> bool:
    return lab.node("worker-1").run(["ping", "-c", "1", "-W", "1", node]).returncode == 0


def test_a_dead_node_is_silent(lab: Lab) -> None:
    assert answers(lab, "worker-2")
    os.kill(state.read(lab.id)["worker-2"].pid, signal.SIGKILL)
    assert eventually(lambda: not lab.node("worker-2").usage().running)
    assert not answers(lab, "worker-2")
    assert answers(lab, "server")
    if lab.links.name == "relay":
        emu("link", "restart", lab.name)
        assert not answers(lab, "worker-2") and answers(lab, "server")
    told = report(lab)
    assert [node["state"] for node in told["nodes"]] == ["up", "up", "dead"]
    assert told["links_alive"] and told["links_detail"] == ""
    said = emu("status", "--lab", lab.name).stdout
    assert said.count("worker-2") == 2 and said.count("the node is gone") == 1, "in the table, and why"
    assert all(not counted.a_to_b.unasked for counted in lab.stats().cables.values())
