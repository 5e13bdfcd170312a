"""The parameter server: applies pushes one by one as they come, answers pulls, and never waits for anyone.

The budget starts at the first pull. Workers may come late, never, die at any moment or come back.
"""

from __future__ import annotations

import math
from itertools import count, takewhile
from typing import TYPE_CHECKING

from emulator.core.errors import TrainingError
from emulator.training.compressors.base import MalformedPush
from emulator.training.context import Lost
from emulator.training.exchanges.base import StalePush
from emulator.training.message import Message
from emulator.training.roles.protocol import MODEL, PULL, PUSH, REFUSED, STOP, message_bytes, number
from emulator.training.roles.worker import use_threads
from emulator.training.spec import LAST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.training.context import Context
    from emulator.training.exchanges.base import Exchange
    from emulator.training.layout import Array, Layout
    from emulator.training.spec import RoleSpec

# Emulated seconds to wait for the first worker before giving up.
FIRST_PULL_WITHIN = 600.0


async def parameter_server(ctx: Context, spec: RoleSpec) -> None:
    """Serve until the budget or `max_updates` is used up; raises TrainingError if no worker ever pulls."""
    layout, parameters, exchange = await ctx.compute(_prepare, spec)
    ctx.record("start")
    await Server(ctx, spec, layout, parameters, exchange).run()


def _prepare(spec: RoleSpec) -> tuple[Layout, Array, Exchange]:
    from emulator.training import exchanges, models

    model = models.build(spec.workload)
    use_threads(spec.threads)
    return model.layout, model.initial(spec.seed), exchanges.build(spec.variant, model.layout, spec.seed)


def snapshot_times(spec: RoleSpec) -> Iterator[float]:
    """When to take snapshots between the first and the last of a run, in emulated seconds after the first pull:
    at whole multiples of `evaluate_every`, and `evaluate_last` apart towards the end."""
    tail = [spec.budget - n * spec.evaluate_last for n in range(LAST - 1, 0, -1)] if spec.evaluate_last else []
    first = tail[0] if tail else spec.budget
    yield from takewhile(lambda at: at < first, (n * spec.evaluate_every for n in count(1)))
    yield from tail


class Server:
    """The model, who has pulled which iteration of it, and the byte counts."""

    def __init__(self, ctx: Context, spec: RoleSpec, layout: Layout, parameters: Array, exchange: Exchange) -> None:
        self._ctx = ctx
        self._spec = spec
        self._layout = layout
        self._parameters = parameters
        self._exchange = exchange
        self._pulled: dict[str, int] = {}
        self._push_received: dict[str, float] = {}
        self._copy: tuple[int, Array] = (-1, parameters)
        self._payload_bytes = 0
        self._message_bytes = 0

    async def run(self) -> None:
        ctx, spec = self._ctx, self._spec
        first = await ctx.receive(timeout=FIRST_PULL_WITHIN)
        while not (isinstance(first, Message) and first.kind == PULL):
            if not isinstance(first, (Message, Lost)):
                raise TrainingError(
                    f"no worker asked for the model within {FIRST_PULL_WITHIN:g} emulated seconds",
                    where=ctx.name,
                    fix="look into the workers' logs, and check that they reach the server",
                )
            await self._handle(first)
            first = await ctx.receive(timeout=FIRST_PULL_WITHIN)
        start = ctx.now()
        ctx.record("budget_started")
        self._snapshot()
        await self._handle(first)
        await self._serve(start)
        for worker in spec.workers:
            await ctx.send(worker, Message(STOP))
        self._snapshot(keep=spec.save_parameters)
        ctx.record("stop", reason=self._reason(), updates=self._exchange.iteration)

    async def _serve(self, start: float) -> None:
        """Handle messages until the end, taking snapshots when they are due."""
        end, times = start + self._spec.budget, snapshot_times(self._spec)
        due = start + next(times, math.inf)
        while (now := self._ctx.now()) < end and not self._enough():
            if now >= due:
                # Late by more than one: take one snapshot, not several of the same state.
                while due <= now:
                    due = start + next(times, math.inf)
                self._snapshot()
                continue
            item = await self._ctx.receive(timeout=max(0.0, min(due, end) - now))
            if isinstance(item, (Message, Lost)):
                await self._handle(item)

    def _enough(self) -> bool:
        return self._spec.max_updates is not None and self._exchange.iteration >= self._spec.max_updates

    def _reason(self) -> str:
        return "max_updates" if self._enough() else "budget"

    async def _handle(self, item: Message | Lost) -> None:
        if isinstance(item, Lost):
            self._ctx.record("lost", peer=item.peer, reason=item.reason)
            self._pulled.pop(item.peer, None)
            self._push_received.pop(item.peer, None)
            self._forget()
            return
        size = message_bytes(item)
        self._payload_bytes += item.payload_bytes
        self._message_bytes += size
        if item.kind == PUSH:
            await self._push(item, size)
        elif item.kind == PULL:
            await self._pull(item)
        else:
            self._ctx.record("dropped", worker=item.sender, reason=f"a server knows no {item.kind!r}")

    async def _push(self, push: Message, size: int) -> None:
        ctx, exchange = self._ctx, self._exchange
        self._push_received[push.sender] = float(ctx.now())
        try:
            applied = await ctx.compute(
                exchange.apply, self._parameters, push.arrays, number(push, "iteration"), flops=exchange.apply_flops
            )
        except (MalformedPush, StalePush) as error:
            ctx.record(
                "dropped",
                worker=push.sender,
                reason=str(error),
                payload_bytes=push.payload_bytes,
                message_bytes=size,
            )
            await ctx.send(push.sender, Message(REFUSED, {"reason": str(error)}))
            return
        ctx.record(
            "update",
            n=exchange.iteration,
            worker=push.sender,
            staleness=applied.staleness,
            sigma_mean=applied.sigma_mean,
            payload_bytes=push.payload_bytes,
            message_bytes=size,
        )

    async def _pull(self, pull: Message) -> None:
        worker, iteration = pull.sender, self._exchange.iteration
        if self._copy[0] != iteration:
            # The transport may still be sending an older copy while updates go on.
            self._copy = (iteration, self._parameters.copy())
        fields = {
            "pull": number(pull, "pull"),
            "iteration": iteration,
            "push_received": self._push_received.pop(worker, None),
        }
        model = Message(MODEL, fields, (self._copy[1],))
        await self._ctx.send(worker, model)
        self._ctx.record("pull", worker=worker, payload_bytes=model.payload_bytes, message_bytes=message_bytes(model))
        self._pulled[worker] = iteration
        self._forget()

    def _forget(self) -> None:
        """Tell the exchange what no outstanding pull can ask for any more."""
        self._exchange.forget(min(self._pulled.values(), default=self._exchange.iteration))

    def _snapshot(self, keep: bool = False) -> None:
        self._ctx.snapshot(
            self._layout.split(self._parameters),
            keep=keep,
            updates=self._exchange.iteration,
            payload_bytes_to_server=self._payload_bytes,
            message_bytes_to_server=self._message_bytes,
        )
