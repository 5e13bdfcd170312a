"""What has arrived and was not asked for yet; bounded, and safe against cancellation.

An item leaves the inbox in the same step in which `take` returns it, so a `take` that is cancelled (it lost a
`Context.first`) never takes one with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from emulator.training.context import Lost, TimedOut

if TYPE_CHECKING:
    from emulator.training.message import Message

MAX_ITEMS = 64
MAX_BYTES = 64 * 2**20


def sender_of(item: Message | Lost) -> str:
    """The peer that an item is from, or about."""
    return item.peer if isinstance(item, Lost) else item.sender


class Inbox:
    """A queue of messages and losses, in order of arrival."""

    def __init__(self, max_items: int = MAX_ITEMS, max_bytes: int = MAX_BYTES) -> None:
        self._items: deque[tuple[Message | Lost, int]] = deque()
        self._bytes = 0
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._takers: set[asyncio.Future[None]] = set()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, item: Message | Lost) -> None:
        """Append an item; never waits (a caller that can wait asks `room` first)."""
        size = 0 if isinstance(item, Lost) else item.payload_bytes
        self._items.append((item, size))
        self._bytes += size
        self._wake()
        self._update_room()

    def holds_loss(self, peer: str) -> bool:
        """Whether the loss of `peer` waits to be taken."""
        return any(isinstance(item, Lost) and item.peer == peer for item, _ in self._items)

    async def room(self) -> None:
        """Wait until another message may be put.

        A taker that waits opens the inbox even when it is full: what it waits for may be behind the rest.
        """
        await self._room.wait()

    async def take(self, sender: str | None, timeout: float | None) -> Message | Lost | TimedOut:
        """The first item (of `sender`, if named), or TimedOut after `timeout` real seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            item = self._pop(sender)
            if item is not None:
                return item
            if deadline is not None and loop.time() >= deadline:
                return TimedOut()
            await self._arrival(loop, deadline)

    async def _arrival(self, loop: asyncio.AbstractEventLoop, deadline: float | None) -> None:
        future = loop.create_future()
        self._takers.add(future)
        self._update_room()
        timer = None if deadline is None else loop.call_at(deadline, _finish, future)
        try:
            await future
        finally:
            self._takers.discard(future)
            self._update_room()
            if timer is not None:
                timer.cancel()

    def _pop(self, sender: str | None) -> Message | Lost | None:
        for position, (item, size) in enumerate(self._items):
            if sender is None or sender_of(item) == sender:
                del self._items[position]
                self._bytes -= size
                self._update_room()
                return item
        return None

    def _wake(self) -> None:
        for future in self._takers:
            _finish(future)

    def _update_room(self) -> None:
        full = len(self._items) >= self._max_items or self._bytes >= self._max_bytes
        if full and not self._takers:
            self._room.clear()
        else:
            self._room.set()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
