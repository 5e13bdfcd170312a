"""A Context that plays a script: what `receive` gives is written down, what the role does is kept."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np

from emulator.core.rng import stream
from emulator.training.context import Lost, TimedOut
from emulator.training.message import Message, decode, encode


class Scripted:
    """`script` holds (time, item); when it is used up, every receive times out at the time asked for."""

    def __init__(self, name: str, peers: Sequence[str], script: Sequence[tuple[float, Message | Lost]]) -> None:
        self.name = name
        self.peers = peers
        self._script = list(script)
        self._now = 0.0
        self.sent: list[tuple[str, Message]] = []
        self.records: list[dict[str, Any]] = []
        self.snapshots: list[tuple[float, dict[str, Any]]] = []

    async def send(self, peer: str, message: Message) -> None:
        self.sent.append((peer, decode([bytes(frame) for frame in encode(message)])))

    async def receive(self, from_: str | None = None, timeout: float | None = None) -> Message | Lost | TimedOut:
        if self._script and (timeout is None or self._script[0][0] <= self._now + timeout):
            t, item = self._script.pop(0)
            self._now = max(self._now, t)
            return item
        assert timeout is not None, "the role would wait for ever"
        self._now += timeout
        return TimedOut()

    async def compute(self, fn: Callable[..., Any], *args: Any, flops: float = 0.0) -> Any:
        return fn(*args)

    async def sleep(self, seconds: float) -> None:
        self._now += seconds

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Any:
        raise AssertionError("not in this script")

    async def first(self, *awaitables: Any) -> tuple[int, Any]:
        raise AssertionError("not in this script")

    def now(self) -> float:
        return self._now

    def rng(self, name: str) -> np.random.Generator:
        return stream(0, self.name, name)

    def record(self, kind: str, **fields: Any) -> None:
        self.records.append({"kind": kind, "t": self._now, **fields})

    def snapshot(self, parameters: Sequence[np.ndarray], **fields: Any) -> None:
        self.snapshots.append((self._now, fields | {"norm": float(sum(np.abs(part).sum() for part in parameters))}))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["kind"] == kind]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a role on a scripted context, where nothing ever waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("the role waits for something that is not of its Context")
