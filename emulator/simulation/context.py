"""The `Context` of a role on the virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from emulator.core.rng import stream
from emulator.simulation.drive import Task, Wait, race
from emulator.simulation.fluid import Fluid
from emulator.simulation.mailbox import Mailbox
from emulator.training.message import decode, encode, message_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    import numpy as np

    from emulator.simulation.world import World
    from emulator.training.context import Lost, TimedOut
    from emulator.training.message import Message
    from emulator.training.spec import RoleSpec

T = TypeVar("T")


class SimulatedContext:
    """What one role sees. `compute` really runs its function and then charges flops / gflops of the node's time.

    Computations that a node does at once share its speed evenly. A node with no gflops in the Plan computes in no
    time.
    """

    def __init__(self, world: World, spec: RoleSpec, peers: Sequence[str], gflops: float) -> None:
        self.name = spec.node
        self.peers = peers
        self.role = spec.role
        self.mailbox = Mailbox(world.env)
        self.connected: set[str] = set()
        self.tasks: list[Task] = []
        self._world = world
        self._seed = spec.seed
        self._cpu = Fluid(world.env, {"cpu": gflops * 1e9} if gflops > 0 else {})

    async def send(self, peer: str, message: Message) -> None:
        frames = encode(message)
        # The bytes are copied, as a wire would: the sender may change its arrays afterwards.
        received = decode([bytes(frame) for frame in frames], self.name)
        self._world.carry(self, peer, message_bytes(frames), received)

    async def receive(self, from_: str | None = None, timeout: float | None = None) -> Message | Lost | TimedOut:
        return await self.mailbox.take(from_, timeout)

    async def compute(self, fn: Callable[..., T], *args: Any, flops: float = 0.0) -> T:
        result = fn(*args)
        job = self._cpu.start(flops, ["cpu"])
        try:
            await Wait(job.done)
        finally:
            self._cpu.stop(job)
        return result

    async def sleep(self, seconds: float) -> None:
        await Wait(self._world.env.timeout(max(0.0, seconds)))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Task:
        task = Task(self._world.env, self._world.guarded(self, coroutine))
        self.tasks.append(task)
        return task

    async def first(self, *awaitables: Awaitable[Any]) -> tuple[int, Any]:
        return await race(self._world.env, awaitables)

    def now(self) -> float:
        return float(self._world.env.now)

    def rng(self, name: str) -> np.random.Generator:
        return stream(self._seed, self.name, name)

    def record(self, kind: str, **fields: Any) -> None:
        self._world.records.write(self.now(), self.name, kind, fields)

    def snapshot(self, parameters: Sequence[np.ndarray[Any, Any]], *, keep: bool = False, **fields: Any) -> None:
        self._world.evaluate(self.now(), parameters, fields)
        if keep:
            self._world.keep(parameters)
