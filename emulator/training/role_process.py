"""What a process does once it is in its node: become the role, run it, end with the exit code of its error."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.allocator import keep_freed_memory
from emulator.core.errors import EmuError

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.training.spec import RoleSpec

#: what a held role records, and what lets it go on
READY, HOLD = "ready", signal.SIGUSR1
BUG = 70  # EX_SOFTWARE of sysexits.h: an error that is not the user's


@dataclass(frozen=True)
class RoleRequest:
    """A role to run: its spec, the run's start on the monotonic clock, and descriptors (-1 = none).

    One that is `held` imports everything first, says so by a record "ready", and waits for SIGUSR1.
    """

    spec: RoleSpec
    origin: float
    records: int
    snapshots: int = -1
    held: bool = False


def run_role(request: RoleRequest) -> int:
    """Run a role to its end in this process; returns its exit code, with what went wrong on stderr."""
    return guarded(lambda: _run(request))


def guarded(work: Callable[[], None]) -> int:
    """The exit code of `work`: 0, an EmuError's own (told as a sentence), or `BUG` (told with its traceback)."""
    try:
        work()
    except EmuError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is this process's log file
        return error.exit_code
    except Exception:
        traceback.print_exc()
        return BUG
    return 0


def _hold(request: RoleRequest) -> None:
    from emulator.core.record import RecordWriter
    from emulator.training import lab_context, preload  # noqa: F401

    preload(request.spec.workload)
    RecordWriter(request.records, request.spec.node)(0.0, READY, {})
    signal.sigwait([HOLD])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [HOLD])


def _run(request: RoleRequest) -> None:
    if request.held:
        _hold(request)
    from emulator.training import roles

    role = roles.find(request.spec.role)
    use_threads(request.spec.threads)
    keep_freed_memory()

    async def main() -> None:
        from emulator.training.lab_context import LabContext

        snapshots = request.snapshots if request.snapshots >= 0 else None
        await LabContext(request.spec, request.origin, request.records, snapshots).run(role)

    asyncio.run(main())


def use_threads(count: int) -> None:
    """Let the numeric libraries use `count` threads; those not yet loaded find it in the environment."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(count)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
