"""The controller's side of the warmed process: it imports the framework once, then forks a role in milliseconds.

The process (see `forkserver`) is started early, so that it warms up while the lab does. It joins the lab's control
group, and dies with its controller, and its children with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from emulator.core import errors
from emulator.core.errors import TrainingError
from emulator.core.units import Size
from emulator.training.spec import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from emulator.core.enter import EnterToken
    from emulator.core.lab_id import LabId

PACKET = 1 << 20
WARM_WITHIN = 120.0
# No library may start a thread, or its pool, in the process that is to be forked. Roles get their counts later.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# Threads that wait for each other must sleep, not spin: spinning eats a node's quota, and on a busy host two threads
# took 16 s of CPU for what one does in 4 (evaluating the paper's CNN; 4 again with this).
NO_SPINNING = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class Started:
    """A child is in its node; `pid` is in the controller's numbering."""

    id: str
    pid: int


@dataclass(frozen=True)
class Ended:
    """A child has ended, with an exit code or by a signal (0 = none)."""

    id: str
    code: int
    signal: int


@dataclass(frozen=True)
class Refused:
    """A child could not be put into its node, and does not exist."""

    id: str
    what: str
    fix: str


_EVENTS: dict[str, Callable[..., Started | Ended | Refused]] = {"started": Started, "ended": Ended, "refused": Refused}


class Zygote:
    """A warmed process. Making one returns at once; whatever needs it warm waits for it."""

    def __init__(self, workload: Workload | None = None, lab: LabId | None = None) -> None:
        """Start one that warms up for `workload`, marked as `lab`'s if that is given."""
        self._ready = False
        self._pending: list[dict[str, Any]] = []
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET)
        # The death signal comes when the *thread* ends that started a child, so only the main one may ask for it.
        main = threading.current_thread() is threading.main_thread()
        options = {
            "parent": os.getpid() if main else 0,
            "lab": [lab.name, str(lab.root)] if lab else None,
            "workload": asdict(workload or Workload()),
        }
        command = [sys.executable, "-m", "emulator.training.forkserver", str(theirs.fileno()), json.dumps(options)]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | ONE_THREAD | NO_SPINNING,
                start_new_session=True,  # a Ctrl-C in the terminal is the controller's to handle
            )

    @property
    def pid(self) -> int:
        """The warmed process."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until it is warm; raises the EmuError that kept it from that (no framework, an unknown model)."""
        if not self._ready:
            first = self._next(WARM_WITHIN)
            if first is None:
                raise TrainingError(
                    f"the framework was not imported within {WARM_WITHIN:.0f} s", fix="look at the load of this host"
                )
            if first["event"] == "failed":
                kind = getattr(errors, first["kind"], TrainingError)
                raise kind(first["what"], where=first["where"], fix=first["fix"])
            self._ready = True

    def fork(self, name: str, token: EnterToken, job: dict[str, Any], fds: Sequence[int]) -> None:
        """Ask for a child in a node; a Started or Refused follows from `events`. Does not wait.

        `job` is {"job": "role", spec, origin} or {"job": "accompany" or "drain", workload, data_directory}. `fds` are
        its log, its records file and its snapshot directory.
        """
        self.wait_ready()
        self._tell({"do": "fork", "id": name, "token": token.to_json()} | job, fds)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a child; nothing happens if it has ended."""
        self._tell({"do": "signal", "id": name, "signal": number})

    def events(self, timeout: float) -> list[Started | Ended | Refused]:
        """What happened, waiting up to `timeout` real seconds for a first event.

        Raises TrainingError if the warmed process has died.
        """
        happened, self._pending = self._pending, []
        while (event := self._next(0.0 if happened else timeout)) is not None:
            happened.append(event)
        return [_EVENTS[event.pop("event")](**event) for event in happened]

    def shared_size(self) -> Size:
        """What of this process every child uses without being charged for it: the framework's code and data.

        All that is resident here, less what a fresh child has alone: what a node would hold if it had imported the
        framework itself. (A child's later copies of such pages are counted twice, so this errs to the strict side.)
        """
        self.wait_ready()
        self._tell({"do": "size"})
        while True:
            event = self._next(WARM_WITHIN)
            if event is None:
                raise self._dead()
            if event["event"] == "size":
                return Size(event["rss"] - event["private"])
            self._pending.append(event)

    def close(self) -> None:
        """End the warmed process and all its children; idempotent."""
        self._control.close()
        if self._process.poll() is None:
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGKILL)
                self._process.wait()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, timeout: float) -> dict[str, Any] | None:
        """The next report, or None after `timeout` real seconds."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        deadline = time.monotonic() + timeout
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        try:
            packet = self._control.recv(PACKET)
        except ConnectionResetError:
            packet = b""
        if not packet:
            raise self._dead()
        event: dict[str, Any] = json.loads(packet)
        return event

    def _tell(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], list(fds))
        except (BrokenPipeError, ConnectionResetError):
            raise self._dead() from None

    def _dead(self) -> TrainingError:
        try:
            status: object = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            status = "none yet"
        return TrainingError(
            f"the warmed training process has ended (exit status {status})",
            fix="see its message above; if it was killed (out of memory?), free memory and run again",
        )
