"""What one training step costs this host, measured in a process of its own so that the caller imports no framework.

`python -m emulator.experiment.probe` reads {"workload": a Workload, "data_directory"} as JSON on stdin and prints
{"parameters": n, "step_seconds": CPU seconds of the fastest of a few single-threaded steps}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import ExperimentError

if TYPE_CHECKING:
    from emulator.training.spec import Workload

STEPS = 10
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class StepCost:
    """`parameters` of the model, and CPU seconds of one gradient on one core of this host."""

    parameters: int
    step_seconds: float


def measure(workload: Workload, data_directory: str) -> StepCost:
    """Measure in a child process; raises ExperimentError, with its last line, when the model cannot be built."""
    import os

    environment = os.environ | dict.fromkeys(_THREADS, "1")
    done = subprocess.run(
        [sys.executable, "-m", "emulator.experiment.probe"],
        input=json.dumps({"workload": asdict(workload), "data_directory": data_directory}),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or f"it ended with status {done.returncode}").splitlines()[-1]
        raise ExperimentError(
            f"model {workload.model!r} does not run ({last})", where="workload", fix="mend the model or its options"
        )
    return StepCost(**json.loads(done.stdout))


def _main() -> None:
    import time

    import numpy as np

    from emulator.training import data, models
    from emulator.training.data.batches import prepared
    from emulator.training.roles.worker import use_threads
    from emulator.training.spec import Workload

    asked = json.load(sys.stdin)
    workload = Workload(**asked["workload"])
    model = models.build(workload)
    use_threads(1)
    samples = data.load(workload.dataset, Path(asked["data_directory"]), "train")
    images = prepared(np.asarray(samples.images[: workload.batch]), workload.standardize)
    labels = np.asarray(samples.labels[: workload.batch]).astype(np.int64)
    parameters = model.initial(0)
    fastest = float("inf")
    for _ in range(STEPS):
        start = time.thread_time()
        model.gradients(parameters, images, labels)
        fastest = min(fastest, time.thread_time() - start)
    json.dump(asdict(StepCost(model.layout.size, fastest)), sys.stdout)


if __name__ == "__main__":
    _main()
