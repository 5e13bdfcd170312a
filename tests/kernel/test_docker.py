"""Containers under cgroup version 2: a lab's life on an engine that runs inside the test kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.core.lab_id import LabId
from emulator.core.units import Share
from emulator.lab import Lab
from emulator.lab.status import report
from emulator.runtimes import cgroups, state
from emulator.runtimes.caps import settings
from emulator.runtimes.cgroups import NodeGroups
from emulator.topology import load_plan
from tests.integration.private_engine import TINY, PrivateEngine
from tests.integration.traces import marked
from tests.runtime_world import eventually

pytestmark = [pytest.mark.kernel, pytest.mark.needs("root", "netns", "netem", "cgroup2", "dockerd", "busybox")]
NAME = "kernel-docker"
TOPOLOGY = f"""
name: {NAME}
nodes:
  n: {{device: rpi-3b, memory: 48 MiB, count: 2, image: '{TINY}', command: [sh, -c, echo ready; exec sleep 1000]}}
  hub: {{kind: switch}}
links:
  - {{from: "*", to: hub, rate: 50 Mbit, delay: 20 ms}}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with PrivateEngine() as made:
        yield made


def test_a_lab_of_containers(engine: PrivateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    path = tmp_path / "lab.yaml"
    path.write_text(TOPOLOGY)
    plan = load_plan(path)
    # A whole core each: what starts a container runs under its caps, and is slow enough on an emulated processor.
    plan = replace(plan, nodes=tuple(replace(node, host_cpus=Share(1.0)) for node in plan.nodes))
    Lab.from_plan(plan, runtime="docker", link_driver="netem").up()
    lab = Lab.attach(NAME)
    assert engine.docker("info", "-f", "{{.CgroupVersion}} {{.CgroupDriver}}") == "2 cgroupfs"

    # Caps: in our own group, and in the container's below it.
    found = cgroups.detect()
    assert found.is_v2("cpu") and found.is_v2("memory") and found.is_v2("pids")
    inner = NodeGroups.of_process(found, state.read(lab.id)["n-1"].pid)
    for held in (NodeGroups.of(found, lab.id, "n-1"), inner):
        for controller, file, value in settings(found, lab.node("n-1").plan):
            file_of = held.file(controller, file)
            assert not file_of.exists() or file_of.read_text().strip() == value, file_of

    # Programs, and what they cost.
    assert lab.node("n-2").run(["hostname"]).stdout == "n-2\n"
    assert lab.node("n-1").run(["sh", "-c", "head -c 100000000 /dev/zero | tail"]).returncode == 137
    usage = lab.stats().usage
    assert usage["n-1"].oom_kills == 1 and usage["n-2"].oom_kills == 0
    assert usage["n-1"].cpu > 0 and 1 <= usage["n-1"].pids <= 4

    # An end by another hand: told, and the figures stay.
    engine.docker("kill", f"emu-{NAME}-n-1")
    assert eventually(lambda: not lab.stats().usage["n-1"].running)
    dead, alive = report(Lab.attach(NAME))["nodes"]
    assert "its container ended with exit status 137, SIGKILL" in dead["why"] and "it said: ready" in dead["why"]
    assert (dead["state"], dead["out_of_memory"], alive["state"]) == ("dead", 1, "up")

    lab.down()
    assert marked(LabId.of(NAME)) == [] and engine.docker("ps", "-aq") == ""
