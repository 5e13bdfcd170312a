"""The `Context`: all that a role may use. A role written against it runs in a lab and in the simulator alike.

A role is `async def role(ctx: Context, spec: RoleSpec) -> None` and awaits only what a Context gives; asyncio
inside a role is banned by lint. All times are emulated seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    import numpy as np

    from emulator.training.message import Message

T = TypeVar("T")


@dataclass(frozen=True)
class Lost:
    """Arrives by `receive` in the place of a message when a peer is gone (died, or its connection was cut)."""

    peer: str
    reason: str = ""


@dataclass(frozen=True)
class TimedOut:
    """Arrives by `receive` when its timeout has passed."""


class Task(Protocol):
    """Something spawned. `cancel` is idempotent."""

    def cancel(self) -> None: ...


class Context(Protocol):
    """What a role sees of the world."""

    #: this role's node, and all other nodes with a role
    name: str
    peers: Sequence[str]

    async def send(self, peer: str, message: Message) -> None:
        """Hand a message to the transport; order is kept per pair. Sending to a lost peer is not an error."""
        ...

    async def receive(self, from_: str | None = None, timeout: float | None = None) -> Message | Lost | TimedOut:
        """The next message (of one peer, if named). A lost peer arrives once, as `Lost`."""
        ...

    async def compute(self, fn: Callable[..., T], *args: Any, flops: float = 0.0) -> T:
        """Run `fn(*args)` on the node's CPU (in a lab in a thread); `flops` is what the simulator charges for it."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Task:
        """Run another coroutine of this role beside it; its error ends the role."""
        ...

    async def first(self, *awaitables: Awaitable[Any]) -> tuple[int, Any]:
        """The index and value of whichever is done first; the others are cancelled, and lose no message."""
        ...

    def now(self) -> float: ...

    def rng(self, name: str) -> np.random.Generator:
        """A random stream of this node's own, named; the same on every engine for the same seed."""
        ...

    def record(self, kind: str, **fields: Any) -> None: ...

    def snapshot(self, parameters: Sequence[np.ndarray[Any, Any]], *, keep: bool = False, **fields: Any) -> None:
        """Hand a model state to the evaluator, off the links and outside the budget; an `evaluation` record follows.

        The arrays are copied (or written out) before this returns. With `keep` they also stay in the run's directory
        (parameters.npz).
        """
        ...
