"""A simulated cluster while it runs: the clock, the network, the roles, and what went wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import simpy

from emulator.core.errors import EmuError, TrainingError
from emulator.simulation.context import SimulatedContext
from emulator.simulation.drive import Task
from emulator.simulation.network import Network
from emulator.training import roles, snapshot
from emulator.training.context import Lost
from emulator.training.evaluation import evaluate, variable_names

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from emulator.core.plan import Plan
    from emulator.simulation.records import Records
    from emulator.training.message import Message
    from emulator.training.spec import RoleSpec

EVALUATOR = "evaluator"


class World:
    """Roles on a Plan. `run` goes on until all have ended, or one fails."""

    def __init__(self, plan: Plan, specs: Sequence[RoleSpec], records: Records, evaluate_from: float = 0.0) -> None:
        self.env = simpy.Environment()
        self.records = records
        self._specs = specs
        self._evaluate_from = evaluate_from
        self._network = Network(self.env, plan)
        self._failure: EmuError | None = None
        names = [spec.node for spec in specs]
        self._running: dict[str, SimulatedContext] = {
            spec.node: SimulatedContext(
                self, spec, [name for name in names if name != spec.node], plan.node(spec.node).gflops
            )
            for spec in specs
        }

    def run(self) -> None:
        """Start all roles at time 0 and run them to their ends; raises the EmuError that a role ended with."""
        for spec in self._specs:
            context = self._running[spec.node]
            context.tasks.append(Task(self.env, self._role(context, spec)))
        while self._running and self._failure is None:
            try:
                self.env.step()
            except simpy.core.EmptySchedule:
                self._failure = self._deadlock()
        for context in self._running.values():
            _cancel(context)
        if self._failure is not None:
            raise self._failure

    def carry(self, sender: SimulatedContext, peer: str, nbytes: int, item: Message | Lost) -> None:
        """Bring a message to a peer; one that has ended gets nothing."""

        def deliver() -> None:
            receiver = self._running.get(peer)
            if receiver is not None:
                receiver.connected.add(sender.name)
                receiver.mailbox.put(item)

        sender.connected.add(peer)
        self._network.send(sender.name, peer, nbytes, deliver)

    async def guarded(self, context: SimulatedContext, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of a role; its error ends the run, and stays attached as the cause."""
        try:
            await coroutine
        except Exception as error:
            if self._failure is None:
                self._failure = _failure(context, error)
                self._failure.__cause__ = error

    def evaluate(self, t: float, parameters: Sequence[Any], fields: dict[str, Any]) -> None:
        """Evaluate a snapshot here and now: no time passes for the roles."""
        if t < self._evaluate_from:
            return
        spec = self._specs[0]
        accuracy, loss = evaluate(spec.workload, spec.data_directory, parameters)
        found = {"accuracy": accuracy, "loss": loss if math.isfinite(loss) else None, "snapshot_t": round(t, 6)}
        self.records.write(t, EVALUATOR, "evaluation", fields | found)

    def keep(self, parameters: Sequence[Any]) -> None:
        """Leave a model state with the records."""
        spec = self._specs[0]
        names = variable_names(spec.workload, spec.data_directory)
        snapshot.keep(self.records.directory / snapshot.KEPT, names, parameters)

    async def _role(self, context: SimulatedContext, spec: RoleSpec) -> None:
        await self.guarded(context, roles.find(spec.role)(context, spec))
        del self._running[spec.node]
        _cancel(context, but=context.tasks[0])
        # Whoever was connected learns of the end after all that was sent before.
        for peer in sorted(context.connected):
            if peer in self._running:
                self.carry(context, peer, 0, Lost(spec.node, "ended"))

    def _deadlock(self) -> TrainingError:
        waiting = ", ".join(
            f"{context.role} on {name} since {context.mailbox.waiting_since or 0.0:.3f} s"
            for name, context in self._running.items()
        )
        return TrainingError(
            f"nothing happens any more, and these wait for a message that never comes: {waiting}",
            fix="give the role's receive a timeout, or send what it waits for",
        )


def _cancel(context: SimulatedContext, but: Task | None = None) -> None:
    for task in context.tasks:
        if task is not but:
            task.cancel()


def _failure(context: SimulatedContext, error: Exception) -> EmuError:
    place = f"{context.role} on {context.name} at {context.now():.3f} s"
    if isinstance(error, EmuError):
        return type(error)(error.what, where=f"{place}: {error.where}" if error.where else place, fix=error.fix)
    return TrainingError(
        f"the role failed ({type(error).__name__}: {error})",
        where=place,
        fix="this is a bug in the role; the traceback is that of the cause",
    )
