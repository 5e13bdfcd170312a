"""What one training step costs this host, measured in a process of its own so that the caller imports no framework.

`python -m emulator.experiment.probe` reads {"workload": a Workload, "data_directory", "variants": [Variant, ...],
"counted": whether to count operators} as JSON on stdin and prints a StepCost, of a few single-threaded steps. In a
container it measures the processor that the container's programs are for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import threads
from emulator.core.allocator import keep_freed_memory
from emulator.core.errors import ExperimentError
from emulator.devices.workload import Own
from emulator.experiment.signals import orderly, undisturbed

if TYPE_CHECKING:
    from emulator.core.plan import NodePlan, Plan
    from emulator.training.layout import Array
    from emulator.training.models.base import Model
    from emulator.training.spec import Variant, Workload

#: at most so many steps, and no more once so many CPU seconds have gone by
STEPS, ENOUGH = 10, 5.0
#: real seconds that a container may take for it; importing a framework under QEMU takes ten
WITHIN = 300.0
_ARGUMENTS = ("-m", "emulator.experiment.probe")


@dataclass(frozen=True)
class Step:
    """A worker's step of one variant, gradient and selection: CPU seconds of the fastest, and the flops charged."""

    seconds: float
    flops: float


@dataclass(frozen=True)
class StepCost:
    """`parameters` of the model, CPU seconds of the fastest gradient on one core, and `steps` of variants asked for.
    `own` is what a gradient is made of, where that was asked for and the model is of torch."""

    parameters: int
    step_seconds: float
    steps: Mapping[str, Step] = field(default_factory=dict)
    own: Own | None = None


def measure(
    workload: Workload, data_directory: str, variants: Sequence[Variant] = (), counted: bool = False
) -> StepCost:
    """Measure in a child process, and count the operators if asked to; raises ExperimentError, with its last line, when
    the model cannot be built."""
    done = subprocess.run(
        [sys.executable, *_ARGUMENTS],
        input=_request(workload, data_directory, variants, counted),
        capture_output=True,
        text=True,
        env=os.environ | threads.ONE,
        check=False,
    )
    if done.returncode:
        raise _failure(workload, done.returncode, done.stderr)
    return _cost(done.stdout)


def measure_in(
    plan: Plan,
    node: NodePlan,
    runtime: str | None,
    workload: Workload,
    data_directory: str,
    variants: Sequence[Variant],
) -> StepCost:
    """Measure in a node like this one, alone in a lab of its own that is removed again: for another processor.

    Raises as a lab does, and ExperimentError when the model does not run there.
    """
    from emulator.core.plan import Plan
    from emulator.lab import Lab

    alone = replace(node, interfaces=(), routes=(), address=None, command=())
    name = f"{plan.name[:24].rstrip('-')}-probe-{os.getpid()}"
    lab = Lab.from_plan(Plan(name, (alone,), (), plan.time_scale), runtime=runtime)
    with orderly():
        try:
            lab.up()
            done = lab.node(node.name).run(
                ["python3", *_ARGUMENTS],
                env=threads.ONE,
                input=_request(workload, data_directory, variants),
                timeout=WITHIN,
            )
        finally:
            with undisturbed():
                lab.down()
    if done.returncode:
        raise _failure(workload, done.returncode, done.stderr, f" on {node.name} ({node.cpu_model or node.arch})")
    return _cost(done.stdout)


def _request(workload: Workload, data_directory: str, variants: Sequence[Variant], counted: bool = False) -> str:
    asked = {"workload": asdict(workload), "data_directory": data_directory, "counted": counted}
    return json.dumps(asked | {"variants": [asdict(variant) for variant in variants]})


def _cost(text: str) -> StepCost:
    raw = json.loads(text)
    steps = {name: Step(**step) for name, step in raw["steps"].items()}
    return StepCost(**raw | {"steps": steps, "own": raw["own"] and Own.from_dict(raw["own"])})


def _failure(workload: Workload, status: int, said: str, place: str = "") -> ExperimentError:
    last = (said.strip() or f"it ended with status {status}").splitlines()[-1]
    if status in (-4, 128 + 4):
        last = "it needs an instruction that this processor lacks, SIGILL"
    return ExperimentError(
        f"model {workload.model!r} does not run{place} ({last})", where="workload", fix="mend the model or its options"
    )


def _main() -> None:
    from emulator.training import exchanges
    from emulator.training.spec import Variant, Workload

    keep_freed_memory()  # as a role does
    asked = json.load(sys.stdin)
    workload = Workload(**asked["workload"])
    model, images, gradients_once = _prepared(workload, asked["data_directory"])
    step_seconds = _fastest(gradients_once)
    steps = {}
    for variant in (Variant(**raw) for raw in asked["variants"]):
        exchange = exchanges.build(variant, model.layout, 0)
        gradients, _ = gradients_once()
        selecting = _fastest(lambda: exchange.select(gradients))  # noqa: B023 - called before the next one
        steps[variant.name] = Step(step_seconds + selecting, model.flops(workload.batch) + exchange.select_flops)
    own = _own(workload, model, images, gradients_once, step_seconds) if asked["counted"] else None
    json.dump(asdict(StepCost(model.layout.size, step_seconds, steps, own)), sys.stdout)


def own_step(workload: Workload, data_directory: str) -> Own | None:
    """What a gradient of the workload is made of, counted in this process, where the model is to run anyway; None for a
    model that is not of torch, or that does not run (which the run itself tells better)."""
    try:
        model, images, gradients_once = _prepared(workload, data_directory)
        return _own(workload, model, images, gradients_once)
    except Exception:
        return None


def _prepared(workload: Workload, data_directory: str) -> tuple[Model, Array, Callable[[], tuple[list[Array], float]]]:
    """The model, its first batch of images, and a function that computes their gradient on one thread."""
    import numpy as np

    from emulator.training import data, models
    from emulator.training.data.batches import prepared
    from emulator.training.roles.worker import use_threads

    model = models.build(workload)
    use_threads(1)
    samples = data.load(workload.dataset, Path(data_directory), "train")
    images = prepared(np.asarray(samples.images[: workload.batch]), workload.standardize)
    labels = np.asarray(samples.labels[: workload.batch]).astype(np.int64)
    parameters = model.initial(0)
    return model, images, lambda: model.gradients(parameters, images, labels)


def _own(
    workload: Workload, model: Model, images: Array, work: Callable[[], object], seconds: float | None = None
) -> Own | None:
    charged = model.flops(workload.batch)
    if "torch" not in sys.modules or charged <= 0:
        return None
    from emulator.devices import operators

    try:
        step = operators.run(workload.model, work, len(images), images.shape[-1], model.layout.size)
    except ExperimentError:
        return None
    return Own(step, charged, seconds)


def _fastest(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several runs: what else the host does makes the others slower."""
    import time

    took: list[float] = []
    while len(took) < STEPS and sum(took) < ENOUGH:
        start = time.thread_time()
        work()
        took.append(time.thread_time() - start)
    return min(took)


if __name__ == "__main__":
    _main()
