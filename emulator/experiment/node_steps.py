"""Training steps of the reference models on nodes that really run them, each under the cap of its own `train:MODEL`.

What a node takes for a step is held against the public figure and against what the workload model says. The nodes are
up together and run one after another. Needs pytorchcv, and a time scale at which each fits into the host's cores.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import HostError, LabError
from emulator.devices import roofline
from emulator.devices.kernels.register import STEP
from emulator.devices.profile import profile
from emulator.devices.workload import reference, references
from emulator.experiment.signals import orderly, undisturbed

if TYPE_CHECKING:
    from emulator.core.plan import Plan
    from emulator.lab import Lab

#: real seconds that a node may take for all its rounds
WITHIN = 600.0


@dataclass(frozen=True)
class NodeStep:
    """Emulated seconds of one step of `model`: the public figure (None = there is none), the workload model's, and the
    mean of `rounds` steps that a node ran. `fitted`: the figure is one that the workload model was fitted on. `cpus` is
    the node's cap in host cores; `slower` tells of a cap that this host could not give, empty if it could."""

    model: str
    reference: float | None
    predicted: float
    measured: float
    rounds: int
    fitted: bool
    cpus: float
    slower: str = ""

    @property
    def error(self) -> float | None:
        """How far the node is off the public figure, as a share of it."""
        return None if self.reference is None else self.measured / self.reference - 1


def measure(
    device: str = roofline.DONOR,
    models: Sequence[str] = (),
    time_scale: float = 0.4,
    runtime: str = "embedded",
) -> Iterator[NodeStep]:
    """Run a few steps of each model (none = all) on a node of that device, in a lab that is removed again.

    The models are those of this Python, which nodes of the embedded runtime see; images do not hold them.
    Raises HostError without pytorchcv, TopologyError for a device or model that is not known, LabError when a step does
    not run, and as a lab does.
    """
    from importlib.util import find_spec

    from emulator.devices.host_step import PACKAGE
    from emulator.lab import Lab

    if find_spec(PACKAGE) is None:
        raise HostError("the reference models are not installed", fix=f"pip install {PACKAGE}==0.0.67, or `make setup`")
    asked = tuple(dict.fromkeys(models or references()))
    plan = plan_of(device, asked, time_scale)
    lab = Lab.from_plan(plan, runtime=runtime)
    with orderly():
        try:
            lab.up()
            for model in asked:
                yield _on(lab, plan, model)
        finally:
            with undisturbed():
                lab.down()


def plan_of(device: str, models: Sequence[str], time_scale: float) -> Plan:
    """A Plan with a node for each model, calibrated by its step."""
    from emulator.core.yaml_file import parse
    from emulator.topology import resolve
    from emulator.topology.topology import check

    nodes = {_name(model): {"device": device, "calibrate": f"train:{model}"} for model in models}
    document = parse(json.dumps({"name": f"steps-{os.getpid()}", "nodes": nodes}), "steps")
    return resolve(check(document), time_scale=time_scale)


def _name(model: str) -> str:
    """A node's name may have no underscore."""
    return model.replace("_", "-")


def _on(lab: Lab, plan: Plan, model: str) -> NodeStep:
    node = plan.node(_name(model))
    command = ["python3", "-m", "emulator.devices.kernels", f"{STEP}{model}", "--seconds", "1", "--rounds", "2"]
    done = lab.node(node.name).run([*command, "--threads", str(node.threads)], timeout=WITHIN)
    if done.returncode:
        last = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        raise LabError(f"a step of {model} does not run on {node.name} ({last})", fix="see `emu doctor`")
    read = json.loads(done.stdout)["kernels"][f"{STEP}{model}"]
    known = profile(node.device)
    line = roofline.of(known)
    measured = roofline.training(known)
    predicted = line.seconds(reference(model)) if line else 0.0
    slower = next((note for note in plan.notes if "slower than asked" in note and node.name in note), "")
    fitted = model in roofline.FIT and bool(line and not line.derived)
    return NodeStep(
        model,
        measured.get(model),
        predicted,
        1 / read["mean"] / plan.time_scale,
        read["rounds"],
        fitted,
        float(node.host_cpus),
        slower,
    )
