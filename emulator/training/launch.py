"""Run a set of roles in a lab's nodes from start to end, evaluate what they leave, and leave nothing behind."""

from __future__ import annotations

import signal
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.core.clock import ScaledClock
from emulator.core.enter import EnterToken
from emulator.training import evaluator
from emulator.training.crew import Crew
from emulator.training.role_process import HOLD, READY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from emulator.training.spec import RoleSpec
    from emulator.training.zygote import Ended, Zygote

# How long workers may take to stop after the server has: emulated seconds, and a floor of real ones. Then SIGTERM,
# whose effect is waited for in real seconds, then SIGKILL.
GRACE, GRACE_FLOOR, TERM_GRACE = 10.0, 2.0, 1.0


@dataclass(frozen=True)
class RunOutcome:
    """How a run went. `origin` is its start on the host's monotonic clock, `seconds` its length in emulated time.

    `real_seconds` is the wall time of all, `drain_seconds` the part in which only the evaluator worked. `exits` has
    (code, signal) of each node's process; `died` are the workers that failed while the run went on.
    """

    origin: float
    seconds: float
    real_seconds: float
    drain_seconds: float
    exits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    died: tuple[str, ...] = ()


def run_roles(
    zygote: Zygote,
    tokens: Mapping[str, EnterToken],
    specs: Sequence[RoleSpec],
    out: Path,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    *,
    beside: int | None = None,
    poll: float = 0.2,
    on_tick: Callable[[float], None] | None = None,
    on_drain: Callable[[int], None] | None = None,
) -> RunOutcome:
    """Start the server, then the workers; follow them until the server has ended and every snapshot is evaluated.

    Records of all nodes go to `out` and, as they come, to `on_record`; `on_tick` is told the emulated time about
    every `poll` real seconds while roles run, `on_drain` how many snapshots are left after that. A worker that fails
    leaves a record "died" {code, signal} of its node, and the run goes on. Roles without a server among them run
    until all have ended.

    Roles of nodes with a Python of their own (`EnterToken.interpreter`) import everything first, and begin together.
    `beside` is a process whose CPU the evaluator shares while roles run (see `evaluator.accompany`).

    Raises TrainingError if the server, the evaluator or every worker fails, RuntimeFailure if a node is gone before
    its role is in it, ResultError if `out` cannot be written. However it ends, also by KeyboardInterrupt, no process
    of it is left.
    """
    zygote.wait_ready()
    ignore: Callable[[Any], None] = lambda _: None  # noqa: E731 - a one-word default for three callbacks
    held = {spec.node for spec in specs if tokens[spec.node].interpreter}

    def see(item: dict[str, Any]) -> None:
        if item["kind"] == READY:
            held.discard(item["node"])
        else:
            (on_record or ignore)(item)

    with Crew(zygote, out, see) as crew:
        run = _Run(crew, specs, beside)
        run.start(tokens)
        run.release(held)
        run.follow(poll, on_tick or ignore)
        ended = run.clock.now()
        run.stop_rest(poll, on_tick or ignore)
        drain_from = time.monotonic()
        run.drain(on_drain or ignore)
        now = time.monotonic()
        exits = {name: (event.code, event.signal) for name, event in crew.exits.items()}
        return RunOutcome(run.clock.origin, ended, now - run.clock.origin, now - drain_from, exits, tuple(run.died))


class _Run:
    def __init__(self, crew: Crew, specs: Sequence[RoleSpec], beside: int | None) -> None:
        self._crew = crew
        self._beside = beside
        self._specs = sorted(specs, key=lambda spec: spec.node != spec.server)
        names = {spec.node for spec in specs}
        self._leaders = {spec.node for spec in specs if spec.node == spec.server} or names
        self._scale = specs[0].time_scale
        self.clock = ScaledClock(self._scale, time.monotonic())
        self.died: list[str] = []

    @property
    def _roles(self) -> set[str]:
        return self._crew.running - {evaluator.NODE}

    @property
    def _leading(self) -> bool:
        return bool(self._leaders & self._crew.running)

    def start(self, tokens: Mapping[str, EnterToken]) -> None:
        """Ask for all processes at once."""
        self._evaluator("accompany")
        for spec in self._specs:
            role = {"job": "role", "spec": asdict(spec), "origin": self.clock.origin}
            self._crew.fork(spec.node, tokens[spec.node], role)

    def release(self, held: set[str]) -> None:
        """Let roles that had to import everything in their nodes begin together; `held` shrinks as they get ready."""
        waiting = sorted(held)
        while held & self._crew.running and self._leading:
            self._step(0.2)
        self._crew.signal(waiting, HOLD)

    def follow(self, poll: float, on_tick: Callable[[float], None]) -> None:
        """Until the server has ended; raises TrainingError if it failed."""
        while self._leading:
            self._step(poll)
            on_tick(self.clock.now())

    def stop_rest(self, poll: float, on_tick: Callable[[float], None]) -> None:
        """Let the workers end by themselves; terminate, then kill those that do not."""
        for seconds, number in (
            (max(GRACE * self._scale, GRACE_FLOOR), signal.SIGTERM),
            (TERM_GRACE, signal.SIGKILL),
        ):
            deadline = time.monotonic() + seconds
            while self._roles and (left := deadline - time.monotonic()) > 0:
                self._step(min(poll, left))
                on_tick(self.clock.now())
            self._crew.signal(self._roles, number)
        while self._roles:
            self._step(poll)

    def drain(self, on_drain: Callable[[int], None]) -> None:
        """Evaluate what is left, now that the roles have ended and nobody is disturbed."""
        self._crew.signal([evaluator.NODE], signal.SIGTERM)
        while self._crew.running:
            self._step(evaluator.POLL)
        left = self._crew.left()
        if left:
            self._evaluator("drain")
        while self._crew.running:
            on_drain(left)
            while self._crew.running and self._crew.left() == left:
                self._step(evaluator.POLL)
            left = self._crew.left()

    def _evaluator(self, job: str) -> None:
        first = self._specs[0]
        order: dict[str, Any] = {"job": job, "workload": asdict(first.workload), "data_directory": first.data_directory}
        if job == "accompany":
            order["beside"] = self._beside
        self._crew.fork(evaluator.NODE, EnterToken(evaluator.NODE), order)

    def _step(self, timeout: float) -> None:
        for event in self._crew.step(timeout):
            told = event.id == evaluator.NODE and event.signal == signal.SIGTERM
            if (event.code or event.signal) and not told:
                self._judge(event)

    def _judge(self, event: Ended) -> None:
        if event.id in self._leaders or event.id == evaluator.NODE:
            raise self._crew.failure(event)
        if not self._leading:
            return
        self.died.append(event.id)
        self._crew.note(self.clock.now(), event.id, "died", code=event.code, signal=event.signal)
        if len(self.died) == len(self._specs) - len(self._leaders):
            raise self._crew.failure(event, "all workers have failed, the last one like this: ")
