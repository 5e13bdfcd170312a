"""The evaluator: a process of the host, beside the run, that turns snapshots into `evaluation` records.

It stands outside the nodes and the links, and takes only what CPU the roles leave (SCHED_IDLE, in a scheduling group
of its own). What it does not manage during the run it drains after it, then with all cores.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from emulator.core.clock import RealClock
from emulator.core.errors import ResultError
from emulator.core.record import RecordWriter
from emulator.training import snapshot
from emulator.training.role_process import use_threads

if TYPE_CHECKING:
    from emulator.training.spec import Workload

NODE = "evaluator"
#: a file of this name in the snapshot directory says that no more will come
END = "end"
POLL = 0.1


def evaluate_all(workload: Workload, data_directory: str, snapshots: int, records: int) -> None:
    """Evaluate snapshots in order, deleting each, until the directory holds `END` and nothing else.

    Record: t and `snapshot_t` = the snapshot's emulated time, `updates`, `accuracy`, `loss` (null if not finite), and
    whatever else the role handed to `snapshot`.
    """
    yield_to_others()
    use_threads(1)
    write, clock, alone = RecordWriter(records, NODE), RealClock(), False
    while True:
        ended = END in os.listdir(snapshots)
        names = snapshot.waiting(snapshots)
        if ended and not names:
            return
        if ended and not alone:
            alone = True
            use_threads(len(os.sched_getaffinity(0)))
        if names:
            _evaluate(workload, data_directory, snapshots, names[0], write)
        else:
            clock.sleep(POLL)


def _evaluate(workload: Workload, data_directory: str, snapshots: int, name: str, write: RecordWriter) -> None:
    from emulator.training.evaluation import evaluate

    parameters, fields = snapshot.read(snapshots, name)
    accuracy, loss = evaluate(workload, data_directory, parameters)
    figures: dict[str, Any] = {"accuracy": accuracy, "loss": loss if math.isfinite(loss) else None}
    try:
        write(fields["snapshot_t"], "evaluation", fields | figures)
    except OSError as error:
        raise ResultError(
            f"a record cannot be written ({error.strerror})", where=NODE, fix="free space where the runs are kept"
        ) from None
    snapshot.remove(snapshots, name)


def yield_to_others() -> None:
    """Run only when nothing else would.

    Under autogrouping a process's own priority counts only within its session, so the session's is lowered too.
    """
    os.setsid()
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        descriptor = os.open("/proc/self/autogroup", os.O_WRONLY)
    except FileNotFoundError:
        return  # this kernel has no autogroups
    try:
        os.write(descriptor, b"19")
    finally:
        os.close(descriptor)
