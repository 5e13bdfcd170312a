"""The Context of a lab: real sockets, a real clock. The only place where roles meet asyncio."""

from __future__ import annotations

import asyncio
import inspect
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.core import rng
from emulator.core.clock import ScaledClock
from emulator.core.errors import ResultError
from emulator.core.record import RecordWriter
from emulator.training import snapshot
from emulator.training.inbox import Inbox
from emulator.training.peer import TimeLimits
from emulator.training.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    import numpy as np

    from emulator.training.context import Lost, Task, TimedOut
    from emulator.training.message import Message
    from emulator.training.roles import Role
    from emulator.training.spec import RoleSpec

T = TypeVar("T")


class LabContext:
    """Implements `training.context.Context`; made inside a running event loop, one per process.

    `origin` is the run's start on the host's monotonic clock, which all nodes share. `records` is a descriptor
    open for appending, `snapshots` one of a directory (None where the role takes none); both were opened before
    the node was entered.
    """

    def __init__(
        self,
        spec: RoleSpec,
        origin: float,
        records: int,
        snapshots: int | None = None,
        limits: TimeLimits | None = None,
    ) -> None:
        addresses = dict(spec.addresses)
        self.name = spec.node
        self.peers: Sequence[str] = [node for node in addresses if node != spec.node]
        self._spec = spec
        self._clock = ScaledClock(spec.time_scale, origin)
        self._write = RecordWriter(records, spec.node)
        self._snapshots = snapshots
        self._taken = 0
        self._inbox = Inbox()
        self._transport = Transport(
            spec.node, addresses, spec.port, self._inbox, limits or TimeLimits.of(spec.time_scale)
        )
        # One thread: a node computes one thing after another, and the event loop stays free to take messages.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="compute")
        self._spawned: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, role: Role) -> None:
        """Run a role to its end, and say goodbye; an error of it, or of what it spawned, is raised here."""
        loop = asyncio.get_running_loop()
        reader = self._transport.start()
        main = loop.create_task(role(self, self._spec))
        watched: set[asyncio.Future[None]] = {main, reader, self._failure}
        try:
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                future.result()
            await self._end(main)
            await self._transport.close()
        finally:
            await self._end(main)
            self.close()

    def close(self) -> None:
        """Give up sockets and thread at once; `run` does so at its end. Idempotent."""
        self._transport.abandon()
        self._failure.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _end(self, main: asyncio.Task[None]) -> None:
        tasks = [main, *self._spawned]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, peer: str, message: Message) -> None:
        await self._transport.send(peer, message)

    async def receive(self, from_: str | None = None, timeout: float | None = None) -> Message | Lost | TimedOut:
        return await self._inbox.take(from_, None if timeout is None else timeout * self._spec.time_scale)

    async def compute(self, fn: Callable[..., T], *args: Any, flops: float = 0.0) -> T:
        """Run it in the compute thread. One that is cancelled goes on there, and the next waits for it.

        Where the spec sets a pace it takes as long as the device would for these flops, and leaves a record "paced":
        `modelled_s` of the device, and `took_s` of this host, both emulated. What took longer stays as long as it was.
        """
        seconds = self._spec.pace * flops
        work = partial(self._in_pace, seconds, fn) if seconds else fn
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    def _in_pace(self, seconds: float, fn: Callable[..., T], *args: Any) -> T:
        started = self.now()
        result = fn(*args)
        took = self.now() - started
        self.record("paced", modelled_s=seconds, took_s=took)
        self._clock.sleep(seconds - took)
        return result

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds) * self._spec.time_scale)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Task:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._spawned.add(task)
        task.add_done_callback(self._reap)
        return _Spawned(task)

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._spawned.discard(task)
        if not task.cancelled() and task.exception() is not None and not self._failure.done():
            self._failure.set_exception(task.exception() or AssertionError("unreachable"))

    async def first(self, *awaitables: Awaitable[Any]) -> tuple[int, Any]:
        return await first(*awaitables)

    def now(self) -> float:
        return self._clock.now()

    def rng(self, name: str) -> np.random.Generator:
        return rng.stream(self._spec.seed, self._spec.node, name)

    def record(self, kind: str, **fields: Any) -> None:
        """Append a record; raises ResultError if it cannot be stored (a full disk)."""
        try:
            self._write(self.now(), kind, fields)
        except OSError as error:
            raise ResultError(
                f"a record cannot be written ({os.strerror(error.errno or 0)})",
                where=self.name,
                fix="free space where the runs are kept",
            ) from None

    def snapshot(self, parameters: Sequence[np.ndarray[Any, Any]], *, keep: bool = False, **fields: Any) -> None:
        """Write the state out for the evaluator, stamped with the emulated time as `snapshot_t`."""
        if self._snapshots is not None:
            self._taken += 1
            stamped = fields | {"snapshot_t": self.now()}
            snapshot.write(self._snapshots, self._taken, parameters, stamped, keep=keep)


class _Spawned:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


async def first(*awaitables: Awaitable[Any]) -> tuple[int, Any]:
    """The index and value of whichever is done first; the others are cancelled before they can take anything.

    The winner cancels the losers in the very step in which it finishes, so no two can both have taken a message.
    """
    decided: list[int] = []

    async def compete(index: int, awaitable: Awaitable[Any]) -> Any:
        try:
            return await awaitable
        finally:
            if not decided:
                decided.append(index)
                for other, task in enumerate(tasks):
                    if other != index:
                        task.cancel()

    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(compete(index, awaitable)) for index, awaitable in enumerate(awaitables)]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for awaitable in awaitables:
            if inspect.iscoroutine(awaitable):
                awaitable.close()  # one that was cancelled before its first step would warn that it never ran
    errors = [result for result in results if isinstance(result, Exception)]
    if errors:
        raise errors[0]
    return decided[0], tasks[decided[0]].result()
