"""Small roles for tests of the engines. Each says what it saw by records of kind "saw".

Found by the engines as `<this file>:<name>`; "server" is `spec.server`, the others are the workers.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from emulator.core.errors import TrainingError
from emulator.training.context import Lost, TimedOut
from emulator.training.message import Message

if TYPE_CHECKING:
    from emulator.training.context import Context
    from emulator.training.spec import RoleSpec

LARGE = 421_642  # entries, as the paper's CNN has parameters


async def pong(ctx: Context, spec: RoleSpec) -> None:
    """Answer every ping with what it held, until all workers have gone."""
    left = set(spec.workers)
    while left:
        item = await ctx.receive()
        if isinstance(item, Message):
            await ctx.send(item.sender, Message("pong", item.fields, item.arrays))
        else:
            left.discard(item.peer)
    ctx.record("saw", what="all gone")


async def ping(ctx: Context, spec: RoleSpec) -> None:
    """Ten pings, small and large; the answer must be what was sent."""
    for number in range(10):
        array = np.full(LARGE if number % 2 else 3, number, np.float32)
        await ctx.send(spec.server, Message("ping", {"n": number}, (array,)))
        answer = await ctx.receive(spec.server, timeout=60.0)
        assert isinstance(answer, Message), answer
        ctx.record("saw", n=answer.fields["n"], equal=bool(np.array_equal(answer.arrays[0], array)))


async def collect(ctx: Context, spec: RoleSpec) -> None:
    """Record the numbers that each worker sent, in order of arrival, until it is lost."""
    numbers: dict[str, list[int]] = {worker: [] for worker in spec.workers}
    lost: list[str] = []
    while len(lost) < len(spec.workers):
        item = await ctx.receive()
        if isinstance(item, Message):
            assert item.sender not in lost, "a message after the loss of its sender"
            numbers[item.sender].append(item.fields["n"])
        elif isinstance(item, Lost):
            lost.append(item.peer)
    for worker in spec.workers:
        ctx.record("saw", worker=worker, numbers=numbers[worker])
    # To a lost peer is not an error, and a loss arrives once.
    await ctx.send(spec.workers[0], Message("anyone?"))
    nothing = await ctx.receive(timeout=0.5)
    ctx.record("saw", afterwards=type(nothing).__name__)


async def count(ctx: Context, spec: RoleSpec) -> None:
    """Send 100 numbered messages of mixed sizes, and end at once: all must arrive, in order."""
    for number in range(100):
        size = 50_000 if number % 7 == 3 else number % 5
        await ctx.send(spec.server, Message("number", {"n": number}, (np.zeros(size, np.float32),)))


async def choose(ctx: Context, spec: RoleSpec) -> None:
    """Wait for two workers by `first`, many times; no message may get lost and each worker's order must hold."""
    one, two = spec.workers
    numbers: dict[str, list[int]] = {one: [], two: []}
    winners = set()
    while sum(map(len, numbers.values())) < 200:
        index, item = await ctx.first(ctx.receive(one), ctx.receive(two), ctx.sleep(60.0))
        assert isinstance(item, Message), item
        assert item.sender == (one, two)[index]
        winners.add(index)
        numbers[item.sender].append(item.fields["n"])
    index, value = await ctx.first(ctx.sleep(60.0), ctx.receive(timeout=120.0), ctx.sleep(0.05), _seven(ctx))
    ctx.record("saw", numbers=[numbers[one], numbers[two]], winners=sorted(winners), last=[index, str(value)])


async def _seven(ctx: Context) -> int:
    await ctx.sleep(30.0)
    return 7


async def linger(ctx: Context, spec: RoleSpec) -> None:
    """`count`, then stay until the server has gone."""
    await count(ctx, spec)
    while not isinstance(await ctx.receive(), Lost):
        pass


async def wait(ctx: Context, spec: RoleSpec) -> None:
    """Time-outs: none comes early, and a message after one is not lost."""
    begun = ctx.now()
    nothing = await ctx.receive(timeout=0.3)
    waited = ctx.now() - begun
    late = await ctx.receive(timeout=60.0)
    at_once = await ctx.receive(timeout=0.0)
    ctx.record(
        "saw",
        first=type(nothing).__name__,
        early=waited < 0.299,
        then=late.kind if isinstance(late, Message) else str(late),
        at_once=type(at_once).__name__,
    )


async def late(ctx: Context, spec: RoleSpec) -> None:
    """Send one message after a second, then stay a second."""
    await ctx.sleep(1.0)
    await ctx.send(spec.server, Message("late"))
    await ctx.sleep(1.0)


async def pick(ctx: Context, spec: RoleSpec) -> None:
    """Receive from the second worker while messages of the first wait; then those."""
    one, two = spec.workers
    await ctx.sleep(1.0)
    second = await ctx.receive(two, timeout=60.0)
    first = await ctx.receive(one, timeout=60.0)
    assert isinstance(first, Message), first
    assert isinstance(second, Message), second
    ctx.record("saw", order=[second.sender, first.sender])


async def once(ctx: Context, spec: RoleSpec) -> None:
    """Send one message whose array is changed right after."""
    array = np.arange(LARGE, dtype=np.float32)
    await ctx.send(spec.server, Message("once", {}, (array,)))
    array.fill(-1.0)
    await ctx.sleep(3.0)


async def check_once(ctx: Context, spec: RoleSpec) -> None:
    """What `once` sent must be what it held then."""
    item = await ctx.receive()
    assert isinstance(item, Message), item
    ctx.record("saw", untouched=bool(np.array_equal(item.arrays[0], np.arange(LARGE, dtype=np.float32))))


async def alone(ctx: Context, spec: RoleSpec) -> None:
    """What needs no peer: spawn and cancel, compute, random streams, peers."""
    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await ctx.sleep(0.05)
            ticks.append(1)

    task = ctx.spawn(tick())
    while len(ticks) < 3:
        await ctx.sleep(0.05)
    task.cancel()
    task.cancel()
    await ctx.sleep(0.1)
    stopped = len(ticks)
    await ctx.sleep(0.3)
    product = await ctx.compute(np.multiply, 6, 7, flops=1e6)
    ctx.record(
        "saw",
        ticks_after_cancel=len(ticks) - stopped,
        product=int(product),
        draws=ctx.rng("a").integers(0, 1_000_000, 4).tolist(),
        others=ctx.rng("b").integers(0, 1_000_000, 4).tolist(),
        peers=list(ctx.peers),
    )


async def fail_in_spawned(ctx: Context, spec: RoleSpec) -> None:
    """The error of what was spawned must end the role."""

    async def fail() -> None:
        await ctx.sleep(0.1)
        raise TrainingError("the spawned one failed", fix="expect this")

    ctx.spawn(fail())
    await ctx.sleep(600.0)


async def fail_in_compute(ctx: Context, spec: RoleSpec) -> None:
    """An error in `compute` comes out of it."""
    await ctx.compute(_divide)


def _divide() -> float:
    return 1 / int("0")


async def nothing(ctx: Context, spec: RoleSpec) -> None:
    """End at once."""


# Only for a lab: these look at, or kill, their own process.


async def survive(ctx: Context, spec: RoleSpec) -> None:
    """Echo until told to end, recording whoever is lost or speaks."""
    while True:
        item = await ctx.receive(timeout=600.0)
        if isinstance(item, TimedOut):
            return
        if isinstance(item, Lost):
            ctx.record("saw", lost=item.peer, reason=item.reason)
            continue
        ctx.record("saw", sender=item.sender, message=item.kind)
        if item.kind == "end":
            return
        await ctx.send(item.sender, Message("echo"))


async def die_mid_push(ctx: Context, spec: RoleSpec) -> None:
    """Hand a lot to the transport, and be killed before it can have left."""
    await ctx.send(spec.server, Message("hello"))
    await ctx.receive(spec.server)
    for _ in range(4):
        await ctx.send(spec.server, Message("push", {}, (np.zeros(4 * LARGE, np.float32),)))
    os.kill(os.getpid(), signal.SIGKILL)


async def greet(ctx: Context, spec: RoleSpec) -> None:
    """Say hello, count what comes back within two seconds, end the server."""
    await ctx.send(spec.server, Message("hello"))
    echoes = 0
    while isinstance(await ctx.receive(timeout=2.0), Message):
        echoes += 1
    ctx.record("saw", echoes=echoes)
    await ctx.send(spec.server, Message("end"))


async def greet_late(ctx: Context, spec: RoleSpec) -> None:
    """`greet`, after three seconds."""
    await ctx.sleep(3.0)
    await greet(ctx, spec)


async def upload(ctx: Context, spec: RoleSpec) -> None:
    """Push one model, and go on once it was answered."""
    await ctx.send(spec.server, Message("push", {}, (np.zeros(LARGE, np.float32),)))
    while not isinstance(await ctx.receive(spec.server), Message):
        pass
    await ctx.send(spec.server, Message("end"))


async def chatter(ctx: Context, spec: RoleSpec) -> None:
    """Say something ten times a (scaled) while, whatever comes back."""
    while True:
        await ctx.send(spec.server, Message("hi"))
        await ctx.receive(spec.server, timeout=10.0)
        await ctx.sleep(5.0)


async def die(ctx: Context, spec: RoleSpec) -> None:
    """As the out-of-memory killer does it."""
    os.kill(os.getpid(), signal.SIGKILL)


async def stubborn(ctx: Context, spec: RoleSpec) -> None:
    """Never stop by itself, nor at SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        await ctx.sleep(1000.0)


async def where(ctx: Context, spec: RoleSpec) -> None:
    """Say where this process is, and wait for all others to have said so."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    ctx.record(
        "saw",
        hostname=socket.gethostname(),
        pid=os.getpid(),
        processes=sum(name.isdecimal() for name in os.listdir("/proc")),
        no_new_privs=status["NoNewPrivs"].strip(),
        admin=bool(int(status["CapEff"], 16) & 1 << 21),
        environment=[os.environ.get("EMU_NODE"), os.environ.get("OMP_NUM_THREADS")],
        interfaces=sorted(name for _, name in socket.if_nameindex() if name != "lo"),
    )
    for peer in ctx.peers:
        await ctx.send(peer, Message("here"))
    for peer in ctx.peers:
        assert isinstance(await ctx.receive(peer), Message)


async def parallel(ctx: Context, spec: RoleSpec) -> None:
    """Run a parallel region of two threads, and say how many threads there were."""
    ctx.record("saw", threads=await ctx.compute(_two_threads))


def _two_threads() -> int:
    import torch

    torch.set_num_threads(2)
    before = len(os.listdir("/proc/self/task"))
    matrix = torch.ones(600, 600)
    assert float((matrix @ matrix)[0, 0]) == 600.0
    assert float(torch.ones(4_000_000).sum()) == 4_000_000.0
    return len(os.listdir("/proc/self/task")) - before
