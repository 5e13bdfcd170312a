"""ARM64 nodes on this host: the instruction set of the board, and steps paced to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from emulator.core.errors import HostError
from emulator.experiment import run_experiment
from emulator.lab import Lab
from tests.unit.experiment.files import TOPOLOGY, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("docker-arm64-torch", "netns", "cgroup", "tun")

STEP = """
import os, platform, torch
from emulator.training import models
from emulator.training.spec import Workload
import numpy as np
model = models.build(Workload())
images, labels = np.ones((2, 28, 28), np.float32), np.zeros(2, np.int64)
gradients, loss = model.gradients(model.initial(0), images, labels)
print(platform.machine(), os.environ.get("QEMU_CPU"), len(gradients), loss > 0)
"""
#: so slow that QEMU keeps up with softmax on a busy machine
SLOW = 100.0
QUICK = {"variants": {"asgd": {"exchange": "asgd", "learning_rate": 0.001}}, "max_updates": 6, "budget": "60 s"}


def test_a_training_step_runs_on_the_boards_instruction_set(tmp_path: Path) -> None:
    topology = tmp_path / "one.yaml"
    topology.write_text("name: arm-step\nnodes: {pi: {device: rpi-4, role: worker}}\n")
    with Lab.from_file(topology, arch="arm64", runtime="docker") as lab:
        done = lab.node("pi").run(["python3", "-c", STEP], timeout=120).check()
    assert done.stdout.split() == ["aarch64", "cortex-a72", "8", "True"]


def test_an_experiment_is_refused_or_paced(tmp_path: Path) -> None:
    path = write(tmp_path, topology=TOPOLOGY.replace("name: trio", f"name: arm-trio-{os.getpid()}"))
    options = {"arch": "arm64", "runtime": "docker", "out": tmp_path / "runs", "overrides": QUICK}
    with pytest.raises(HostError, match=r"cannot keep pace at time scale 0.01; `--time-scale [\d.]+` would do"):
        run_experiment(path, time_scale=0.01, **options)
    assert not (tmp_path / "runs").exists(), "nothing is made for an experiment that is refused"
    result = run_experiment(path, time_scale=SLOW, **options)
    steps = result.summary["honesty"]["pacing"]["measured"]
    asgd = result.summary["variants"]["asgd"]
    assert asgd["updates"] == 6
    assert steps["asgd"]["paced"] >= 6
    assert asgd["compute_seconds"] >= steps["asgd"]["device_s"] * 0.999, "a step is never shorter than the device's"
    assert any(
        "ran arm64 programs under QEMU (cortex-a72), paced" in note for note in result.summary["honesty"]["notes"]
    )
