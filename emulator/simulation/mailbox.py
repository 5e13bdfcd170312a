"""What has arrived at a node and was not received yet, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.simulation.drive import Wait
from emulator.training.context import Lost, TimedOut

if TYPE_CHECKING:
    from emulator.training.message import Message


class Mailbox:
    """Messages and losses; any number of coroutines may wait."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._items: list[Message | Lost] = []
        self._changed = env.event()
        #: since when someone waits without limit, None if nobody does
        self.waiting_since: float | None = None

    def put(self, item: Message | Lost) -> None:
        """Something has arrived; whoever waits looks again."""
        self._items.append(item)
        self._changed.succeed()
        self._changed = self._env.event()

    async def take(self, from_: str | None, timeout: float | None) -> Message | Lost | TimedOut:
        """The oldest item (of one peer, if named). It is taken in the very step that returns it."""
        deadline = None if timeout is None else self._env.timeout(max(0.0, timeout))
        while True:
            for index, item in enumerate(self._items):
                if from_ is None or from_ == (item.peer if isinstance(item, Lost) else item.sender):
                    self.waiting_since = None
                    return self._items.pop(index)
            if deadline is None:
                self.waiting_since = self._env.now
                await Wait(self._changed)
            elif deadline.processed:
                return TimedOut()
            else:
                await Wait(self._changed | deadline)
