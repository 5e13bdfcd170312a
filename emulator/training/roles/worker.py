"""The worker: pull the whole model, one mini-batch gradient, push what the exchange selects, until told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from emulator.training.context import Lost, TimedOut
from emulator.training.message import Message
from emulator.training.roles.protocol import MODEL, PULL, PUSH, REFUSED, STOP, finite, number

if TYPE_CHECKING:
    from emulator.training.context import Context
    from emulator.training.data.batches import Batches
    from emulator.training.exchanges.base import Exchange
    from emulator.training.layout import Array
    from emulator.training.models.base import Model
    from emulator.training.spec import RoleSpec

# Emulated seconds. The answer to a pull may take minutes on a slow line, so it is waited for without limit until
# the server was lost once; then each try may take this long.
RETRY_AFTER = 5.0
RETRY_FOR = 300.0
RETRIES = 5


async def worker(ctx: Context, spec: RoleSpec) -> None:
    """Train on this worker's shard against `spec.server`. Ends at the server's word, or when it stays lost."""
    trainer = await ctx.compute(Trainer, ctx, spec)
    ctx.record("start")
    await Session(ctx, spec, trainer).run()


class Trainer:
    """The model, the worker's batches and its half of the exchange: all the computing."""

    def __init__(self, ctx: Context, spec: RoleSpec) -> None:
        from emulator.training import data, exchanges, models
        from emulator.training.data.batches import Batches
        from emulator.training.data.sharding import indices

        workload = spec.workload
        samples = data.load(workload.dataset, Path(spec.data_directory) if spec.data_directory else None, "train")
        mine = indices(workload, samples.labels, spec.index, len(spec.workers), spec.seed)
        self.batches: Batches = Batches(samples, mine, workload.batch, ctx.rng("batches"), workload.standardize)
        self.model: Model = models.build(workload)
        use_threads(spec.threads)
        self.exchange: Exchange = exchanges.build(spec.variant, self.model.layout, spec.seed)
        self.flops = self.model.flops(workload.batch) + self.exchange.select_flops
        if spec.pace:
            # An emulated processor translates what it runs for the first time, which is no part of a step.
            aside = Batches(samples, mine, workload.batch, ctx.rng("aside"), workload.standardize)
            gradients, _ = self.model.gradients(self.model.initial(spec.seed), *aside.next())
            exchanges.build(spec.variant, self.model.layout, spec.seed).select(gradients)

    def step(self, parameters: Array) -> tuple[tuple[Array, ...], float]:
        """One mini-batch: the arrays to push, and the loss."""
        images, labels = self.batches.next()
        # Parameters of a run that diverged overflow; the loss and the server's checks tell.
        with np.errstate(over="ignore", invalid="ignore"):
            gradients, loss = self.model.gradients(parameters, images, labels)
            return self.exchange.select(gradients), loss


class Session:
    """The worker's talk with the server."""

    def __init__(self, ctx: Context, spec: RoleSpec, trainer: Trainer) -> None:
        self._ctx = ctx
        self._spec = spec
        self._trainer = trainer
        self._pulls = 0
        self._step: dict[str, float | None] = {}
        self._pushed_at = 0.0

    async def run(self) -> None:
        ctx, server = self._ctx, self._spec.server
        while (model := await self._pull()) is not None:
            started = ctx.now()
            (parameters,) = model.arrays
            arrays, loss = await ctx.compute(self._trainer.step, parameters, flops=self._trainer.flops)
            self._pushed_at = ctx.now()
            self._step |= {"compute_s": self._pushed_at - started, "loss": finite(loss)}
            await ctx.send(server, Message(PUSH, {"iteration": number(model, "iteration")}, arrays))

    async def _pull(self) -> Message | None:
        """The current model; None when there is no more to do."""
        for attempt in range(RETRIES + 1):
            self._pulls += 1
            await self._ctx.send(self._spec.server, Message(PULL, {"pull": self._pulls}))
            answer = await self._answer(RETRY_FOR if attempt else None)
            if isinstance(answer, Message):
                if answer.kind != STOP:
                    return self._pulled(answer)
                self._ctx.record("stop", reason="told to stop")
                return None
            self._step = {}
            if isinstance(answer, Lost):
                self._ctx.record("lost", peer=answer.peer, reason=answer.reason)
                await self._ctx.sleep(RETRY_AFTER)
        self._ctx.record("stop", reason=f"{self._spec.server} stays lost")
        return None

    async def _answer(self, timeout: float | None) -> Message | Lost | TimedOut:
        """The next word of the server that matters: `model` for the newest pull, `stop`, or that it is lost."""
        while True:
            word = await self._ctx.receive(self._spec.server, timeout)
            if not isinstance(word, Message) or word.kind == STOP:
                return word
            if word.kind == REFUSED:
                self._ctx.record("refused", reason=str(word.fields.get("reason", "")))
                self._step = {}
            elif word.kind == MODEL and number(word, "pull") == self._pulls:
                return word

    def _pulled(self, model: Message) -> Message:
        """Record the step that this answer completes, and start the next one.

        The push and the pull travel together; the server's word on when the push arrived tells them apart (all
        nodes of a run share one clock).
        """
        now, received = self._ctx.now(), model.fields.get("push_received")
        if self._step and isinstance(received, float) and received >= self._pushed_at:
            self._ctx.record("step", **self._step, push_s=received - self._pushed_at)
            self._step = {"pull_s": now - received}
        else:
            self._step = {"pull_s": now - self._pushed_at}
        return model


def use_threads(threads: int) -> None:
    """Tell torch, if the model uses it, how many threads it has; in the thread that computes."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
