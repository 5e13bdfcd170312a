"""The measurements: a node of the device, capped as its Plan says, runs the kernels' program."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import LabError
from emulator.devices import roofline
from emulator.devices.figures import KINDS
from emulator.devices.host_step import PACKAGE
from emulator.devices.kernels.reading import Reading
from emulator.devices.kernels.register import STEP
from emulator.devices.workload import reference, references
from emulator.fidelity.row import CALIBRATED, PREDICTED, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.devices.figures import Figure
    from emulator.devices.profile import DeviceProfile

    #: device, basis of calibration, kernel -> what the kernel reads in a node, in real units, and the time scale
    Measurer = Callable[[str, str, str], Reading]

#: figures that a kernel measures in a node calibrated by `linpack`, with what the kernel is
KERNELS = {
    "hpl": ("dgemm", "the DGEMM that linpack compares by; HPL itself: `emu experiment linpack`"),
    "stream_triad": ("triad", "nothing caps the memory's rate: it follows from the share of a core"),
}
#: figures that the node is calibrated by; STREAM goes into the workload model, but no cap holds a node to it
INPUTS = ("hpl",)
#: figures that describe the machine instead of saying how fast it is, and the watts, which are modelled from them
NO_SPEED = ("cores", "clock", "memory", "l1d", "l1i", "l2", "l3", "idle", "loaded", "hpl_power")
#: derived from the training figures, so no figure of its own
DERIVED = ("sgemm",)
#: the one training step that a quick report runs: the shortest of those that are predicted
QUICK = ("mnasnet",)
NOT_YET = "not available yet: nothing measures it in a node"
#: real seconds for one kernel in a node
LIMIT = 300.0
#: its nodes see the host's files, and so this Python; a container's image has neither the kernels nor torch
RUNTIME = "embedded"


def rows(device: DeviceProfile, time_scale: float, quick: bool, measure: Measurer) -> Iterator[Row]:
    """Every figure of the profile that says how fast it is, measured where it can be. Raises what `measure` does."""
    for key, figure in device.figures.items():
        if key not in (*NO_SPEED, *DERIVED):
            yield _figure(device, key, figure, time_scale, measure)
    yield from _training(device, time_scale, quick, measure)


def _figure(device: DeviceProfile, key: str, figure: Figure, time_scale: float, measure: Measurer) -> Row:
    role, node, note = CALIBRATED if key in INPUTS else PREDICTED, None, NOT_YET
    if key in KERNELS:
        kernel, note = KERNELS[key]
        if device.figure("hpl") is None:
            note = "the device has no hpl to be calibrated by"
        else:
            node = measure(device.name, "linpack", kernel).mean * time_scale
    return Row(device.name, key, role, KINDS[key].unit, figure.value, figure.source, node, note)


def _training(device: DeviceProfile, time_scale: float, quick: bool, measure: Measurer) -> Iterator[Row]:
    known, measured = roofline.of(device), roofline.training(device)
    source = {one.model: one.source for one in device.training}
    for model in references():
        if model not in measured:
            continue
        modelled = None if known is None else known.seconds(reference(model))
        node, note = None, ""
        if known is None:
            note = "the device has too few figures for the workload model"
        elif quick and model not in QUICK:
            note = "left out by --quick"
        elif find_spec(PACKAGE) is None:
            note = f"the package {PACKAGE}, which has the models, is not installed"
        else:
            node = 1 / (measure(device.name, f"train:{model}", f"{STEP}{model}").mean * time_scale)
            note = "capped as the workload model says"
        role = CALIBRATED if model in roofline.FIT else PREDICTED
        yield Row(device.name, f"train_{model}", role, "s", measured[model], source[model], node, note, modelled)


def in_node(device: str, basis: str, kernel: str, time_scale: float) -> Reading:
    """Run the kernel in a node made for it. Raises TopologyError, HostError, LabError, RuntimeFailure."""
    from emulator.lab import Lab
    from emulator.topology import load_plan

    name = f"fidelity-{os.getpid()}"
    text = json.dumps(
        {
            "name": name,
            "defaults": {"device": device, "calibrate": basis, "uplink": "lan"},
            "nodes": {"switch": {"kind": "switch"}, "board": {}},
            "links": [{"from": "board", "to": "switch"}],
        }
    )
    with tempfile.TemporaryDirectory(prefix="emu-fidelity-") as folder:
        file = Path(folder, "board.yaml")
        file.write_text(text)
        plan = load_plan(file, time_scale=time_scale)
    with Lab.from_plan(plan, runtime=RUNTIME) as lab:
        node = lab.node("board")
        command = [sys.executable, "-m", "emulator.devices.kernels", kernel, "--threads", str(node.plan.threads)]
        done = node.run([*command, "--seconds", "2"], timeout=LIMIT).check()
    try:
        return Reading.from_json(json.loads(done.stdout)["kernels"][kernel])
    except (ValueError, LookupError, TypeError):
        raise LabError(
            f"the kernel {kernel} on {device} printed no figure", fix="see `python -m emulator.devices.kernels --help`"
        ) from None
