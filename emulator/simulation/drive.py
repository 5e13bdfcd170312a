"""Coroutines on simpy: `async def` code whose awaits are simpy events, run by a simpy process."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Generator


class Wait:
    """Await a simpy event and get its value."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self._event)


class Task:
    """A coroutine run by a simpy process; `process` is the event of its end."""

    def __init__(self, env: Any, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._cancelled = False
        self.process = env.process(self._run())

    def cancel(self) -> None:
        """Give up; what it holds is released at once, unless it cancels itself: then at its next await."""
        self._cancelled = True
        if inspect.getcoroutinestate(self._coroutine) != inspect.CORO_RUNNING:
            self._coroutine.close()

    def _run(self) -> Generator[Any, Any, Any]:
        value: Any = None
        while not self._cancelled:
            try:
                event = self._coroutine.send(value)
            except StopIteration as end:
                return end.value
            if not self._cancelled:
                value = yield event
        self._coroutine.close()
        return None


class Racer:
    """One awaitable of `first`, stepped by hand only when its own event has fired, so that a loser takes nothing."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._coroutine = _coroutine(awaitable)
        self.event: Any = None
        self.value: Any = None
        self.done = False
        self.step(None)

    def step(self, value: Any) -> None:
        """Run on to the next event, or to the end."""
        try:
            self.event = self._coroutine.send(value)
        except StopIteration as end:
            self.value, self.done = end.value, True

    def close(self) -> None:
        """Give up."""
        self._coroutine.close()


async def race(env: Any, awaitables: tuple[Awaitable[Any], ...]) -> tuple[int, Any]:
    """The index and value of whichever awaitable is done first (of several at once, the first given)."""
    racers: list[Racer] = []
    try:
        for index, awaitable in enumerate(awaitables):
            racers.append(Racer(awaitable))
            if racers[-1].done:
                return index, racers[-1].value
        while True:
            await Wait(env.any_of([racer.event for racer in racers]))
            for index, racer in enumerate(racers):
                if racer.event.processed:
                    racer.step(racer.event.value)
                    if racer.done:
                        return index, racer.value
    finally:
        for racer in racers:
            racer.close()
        for awaitable in awaitables[len(racers) :]:
            _coroutine(awaitable).close()


def _coroutine(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if hasattr(awaitable, "send"):
        return awaitable  # type: ignore[return-value]  # a coroutine already
    return _awaited(awaitable)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
