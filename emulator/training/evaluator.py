"""The evaluator: a process of the host, beside the run, that turns snapshots into `evaluation` records.

It stands outside the nodes and the links. While roles run, it takes only the CPU that they leave; what it does not
manage then, a second one drains after the run, with a process for each core and at normal priority.
"""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core import linux
from emulator.core.clock import RealClock
from emulator.core.errors import ResultError
from emulator.core.record import RecordWriter
from emulator.training import snapshot
from emulator.training.role_process import guarded, use_threads

if TYPE_CHECKING:
    from emulator.training.spec import Workload

NODE = "evaluator"
POLL = 0.1
#: on so many CPUs there is room for everybody
MANY = 4


def accompany(workload: Workload, data_directory: str, snapshots: int, records: int, beside: int | None = None) -> None:
    """Evaluate snapshots as they come, in order, until SIGTERM; see `drain` for the records.

    On a host of few CPUs it goes where the process `beside` (the relay) runs and takes what that leaves, so that the
    nodes have the other CPU to themselves: 13 % more updates in the shipped experiment on two.
    """
    yield_to_others()
    use_threads(1)
    write, clock = RecordWriter(records, NODE), RealClock()
    while True:
        for name in snapshot.waiting(snapshots):
            if beside is not None and (os.cpu_count() or 1) < MANY:
                go_to(beside)
            _evaluate(workload, data_directory, snapshots, name, write)
        clock.sleep(POLL)


def drain(workload: Workload, data_directory: str, snapshots: int, records: int) -> None:
    """Evaluate the snapshots that lie there, one on each core: two threads on one take two thirds of the time.

    Record: t and `snapshot_t` = the snapshot's emulated time, `updates`, `accuracy`, `loss` (null if not finite), and
    whatever else the role handed to `snapshot`. An evaluated snapshot is deleted.
    """
    use_threads(1)
    write = RecordWriter(records, NODE)
    names, cores = snapshot.waiting(snapshots), len(os.sched_getaffinity(0))
    parent, helpers = os.getpid(), []

    def evaluate(part: int) -> None:
        for name in names[part::cores]:
            _evaluate(workload, data_directory, snapshots, name, write)

    for part in range(1, min(cores, len(names))):
        child = os.fork()
        if child == 0:
            linux.die_with_parent(parent)
            os._exit(guarded(lambda: evaluate(part)))  # noqa: B023 - the child has its own
        helpers.append(child)
    evaluate(0)
    for child in helpers:
        if os.waitpid(child, 0)[1]:
            raise ResultError("a model could not be evaluated", where=NODE, fix="see the run's evaluator.log")


def _evaluate(workload: Workload, data_directory: str, snapshots: int, name: str, write: RecordWriter) -> None:
    from emulator.training.evaluation import evaluate, variable_names

    parameters, fields, keep = snapshot.read(snapshots, name)
    if keep:
        beside = Path(f"/proc/self/fd/{snapshots}").readlink().with_name(snapshot.KEPT)
        snapshot.keep(beside, variable_names(workload, data_directory), parameters)
    accuracy, loss = evaluate(workload, data_directory, parameters)
    figures: dict[str, Any] = {"accuracy": accuracy, "loss": loss if math.isfinite(loss) else None}
    # Recorded and deleted, or neither: a SIGTERM between the two would have the snapshot evaluated twice.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        write(fields["snapshot_t"], "evaluation", fields | figures)
        snapshot.remove(snapshots, name)
    except OSError as error:
        raise ResultError(
            f"a record cannot be written ({error.strerror})", where=NODE, fix="free space where the runs are kept"
        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def go_to(pid: int) -> None:
    """Run on the CPU on which that process ran last; anywhere, once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        os.sched_setaffinity(0, {int(fields[36])})
    except OSError:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def yield_to_others() -> None:
    """Run only when nothing else would.

    Under autogrouping a process's own priority counts only within its session, so it gets a session of its own and
    that one's is lowered too.
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
