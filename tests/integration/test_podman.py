"""A lab on Podman's service, which speaks Docker's protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.lab import Lab
from emulator.lab.status import report
from tests.integration.private_engine import PrivateEngine, PrivatePodman
from tests.integration.test_docker_faults import refused, topology
from tests.integration.traces import marked

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay", "podman", "catatonit", "busybox")


@pytest.fixture
def engine() -> Iterator[PrivateEngine]:
    with PrivatePodman() as made:
        yield made


def test_a_lab_on_podman(engine: PrivateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    with Lab.from_file(topology(tmp_path, f"pod-{os.getpid()}"), runtime="docker") as lab:
        assert lab.node("n-1").run(["hostname"]).stdout == "n-1\n"
        engine.docker("kill", f"emu-{lab.name}-n-2")
        assert "its container ended with exit status 137, SIGKILL (it said: ready)" in refused(lab, "n-2")
        assert [item["state"] for item in report(Lab.attach(lab.name))["nodes"]] == ["up", "dead"]
    assert marked(lab.id) == [] and engine.docker("ps", "-aq") == ""
