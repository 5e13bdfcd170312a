"""Small roles for tests of the engines; each says what it saw by records of kind "saw"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.training.context import Lost, TimedOut
from emulator.training.message import Message

if TYPE_CHECKING:
    from emulator.training.context import Context
    from emulator.training.spec import RoleSpec

SIZE = 421_642


async def pong(ctx: Context, spec: RoleSpec) -> None:
    """Answer each ping with its number and arrays, until `end` has come from every worker."""
    left = set(spec.workers)
    while left:
        item = await ctx.receive()
        if isinstance(item, Message) and item.kind == "ping":
            await ctx.send(item.sender, Message("pong", item.fields, item.arrays))
        else:
            left.discard(item.sender if isinstance(item, Message) else item.peer)
    ctx.record("saw", what="the end of all")


async def ping(ctx: Context, spec: RoleSpec) -> None:
    """Ping ten times with an array; the answer must be what was sent."""
    for number in range(10):
        array = np.full(SIZE if number % 2 else 3, number, np.float32)
        await ctx.send(spec.server, Message("ping", {"n": number}, (array,)))
        answer = await ctx.receive(spec.server, timeout=30.0)
        assert isinstance(answer, Message), answer
        ctx.record("saw", n=answer.fields["n"], equal=bool(np.array_equal(answer.arrays[0], array)))
    await ctx.send(spec.server, Message("end"))
