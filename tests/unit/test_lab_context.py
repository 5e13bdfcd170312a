"""The parts of the lab's Context that need no second process: inbox, `first`, limits, arrows of imports."""

from __future__ import annotations

import ast
import asyncio
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

import emulator.training
from emulator.core import record
from emulator.core.errors import ResultError
from emulator.training.context import Lost, TimedOut
from emulator.training.inbox import Inbox
from emulator.training.lab_context import LabContext, first
from emulator.training.message import Message
from emulator.training.peer import _LAST_ACK, TimeLimits
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.transport import Transport


def _message(sender: str, number: int, size: int = 1) -> Message:
    return Message("m", {"n": number}, (np.zeros(size, np.uint8),), sender)


def test_inbox_gives_in_order_by_sender_and_whole() -> None:
    async def body() -> list[Any]:
        inbox = Inbox()
        for item in (_message("a", 1), _message("b", 2), Lost("a"), _message("b", 3)):
            inbox.put(item)
        assert inbox.holds_loss("a")
        assert not inbox.holds_loss("b")
        return [await inbox.take(sender, 0.0) for sender in ("b", None, "a", "a", None, None)]

    two, one, lost, nothing, three, empty = asyncio.run(body())
    assert (two.fields["n"], one.fields["n"], three.fields["n"]) == (2, 1, 3)
    assert lost == Lost("a")
    assert isinstance(nothing, TimedOut)
    assert isinstance(empty, TimedOut)


@pytest.mark.parametrize(("items", "size"), [(3, 1), (100, 400)])
def test_a_full_inbox_has_no_room_until_something_is_taken_or_waited_for(items: int, size: int) -> None:
    async def has_room(inbox: Inbox) -> bool:
        try:
            await asyncio.wait_for(inbox.room(), 0.02)
        except asyncio.TimeoutError:
            return False
        return True

    async def body() -> None:
        inbox = Inbox(max_items=items, max_bytes=1000)
        for number in range(3):
            assert await has_room(inbox)
            inbox.put(_message("a", number, size))
        assert not await has_room(inbox)
        taker = asyncio.create_task(inbox.take("b", None))
        await asyncio.sleep(0)
        assert await has_room(inbox), "the message waited for may be behind the others"
        taker.cancel()
        await asyncio.gather(taker, return_exceptions=True)
        assert not await has_room(inbox)
        await inbox.take("a", None)
        assert await has_room(inbox)

    asyncio.run(body())


def test_first_takes_one_message_even_if_two_are_there() -> None:
    async def body() -> None:
        inbox = Inbox()
        inbox.put(_message("a", 1))
        inbox.put(_message("b", 2))
        index, item = await first(inbox.take("b", None), inbox.take("a", None), inbox.take(None, None))
        assert (index, item.fields["n"]) == (0, 2)
        left = await inbox.take(None, 0.0)
        assert isinstance(left, Message)
        assert left.fields["n"] == 1
        assert isinstance(await inbox.take(None, 0.0), TimedOut)

    asyncio.run(body())


def test_first_takes_one_message_of_two_that_come_at_once() -> None:
    async def body() -> None:
        inbox = Inbox()
        race = asyncio.create_task(first(inbox.take("a", None), inbox.take("b", None)))
        await asyncio.sleep(0.01)
        inbox.put(_message("b", 2))
        inbox.put(_message("a", 1))
        index, item = await race
        left = await inbox.take(None, 0.0)
        assert isinstance(left, Message)
        assert {item.sender, left.sender} == {"a", "b"}
        assert item.sender == "ab"[index]

    asyncio.run(body())


def test_first_raises_what_comes_first_and_cancels_all_when_cancelled() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def fail() -> None:
        raise ValueError("expected")

    async def body() -> None:
        with pytest.raises(ValueError, match="expected"):
            await first(wait(), fail())
        race = asyncio.create_task(first(wait(), wait()))
        await asyncio.sleep(0.01)
        race.cancel()
        with pytest.raises(asyncio.CancelledError):
            await race

    asyncio.run(body())
    assert ended == ["cancelled"] * 3


def test_limits_scale_down_to_a_floor() -> None:
    assert TimeLimits.of(1.0).silence == 60.0
    assert TimeLimits.of(0.2).silence == 12.0
    assert TimeLimits.of(0.001).silence == 5.0
    assert TimeLimits.of(10.0).handshake_ms == 600_000


def test_the_kernels_word_on_the_last_acknowledgement_is_where_we_read_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x")
            accepted.recv(1)

            def silent() -> int:
                (milliseconds,) = _LAST_ACK.unpack(
                    client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK.size)
                )
                return int(milliseconds)

            before = silent()
            asyncio.run(asyncio.sleep(0.3))
            assert silent() - before >= 250
            client.sendall(b"x")
            accepted.recv(1)
            assert silent() < 250


def test_roles_and_their_algorithms_do_not_know_asyncio() -> None:
    root = Path(emulator.training.__file__).parent
    seen = 0
    for folder in ("roles", "exchanges", "compressors", "models"):
        for path in (root / folder).rglob("*.py"):
            seen += 1
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                banned = {"asyncio", "threading", "zmq"} & {name.partition(".")[0] for name in names}
                assert not banned, f"{path}:{node.lineno} imports {banned}; a role awaits only its Context"
    assert seen > 5


def test_a_record_on_a_full_disk_is_a_sentence() -> None:
    spec = RoleSpec("a", "r", Workload(), Variant("v"), "a", (), addresses=(("a", "127.0.0.1"),))

    async def body(records: int) -> None:
        context = LabContext(spec, 0.0, records)
        try:
            context.record("saw", n=1)
        finally:
            context.close()

    with (
        open("/dev/full", "wb", buffering=0) as full,
        pytest.raises(ResultError, match=r"^a: a record cannot be written \(No space left on device\); free space"),
    ):
        asyncio.run(body(full.fileno()))


def test_computing_is_stretched_to_the_pace_and_tells_what_it_took(tmp_path: Path) -> None:
    """A tenth of a second of the device for each flop, two real seconds for one emulated."""
    spec = RoleSpec("a", "r", Workload(), Variant("v"), "a", (), addresses=(("a", "127.0.0.1"),), time_scale=2.0)

    def work(seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    async def body(records: int, pace: float) -> list[float]:
        context = LabContext(replace(spec, pace=pace), time.monotonic(), records)
        took = []
        try:
            for seconds, flops in ((0.0, 1.0), (0.4, 1.0), (0.0, 0.0)):
                start = time.monotonic()
                assert await context.compute(work, seconds, flops=flops) == "done"
                took.append(time.monotonic() - start)
        finally:
            context.close()
        return took

    with (tmp_path / "records").open("wb", buffering=0) as file:
        stretched, overrun, _ = asyncio.run(body(file.fileno(), 0.1))
        assert stretched >= 0.2
        assert overrun >= 0.4
        asyncio.run(body(file.fileno(), 0.0))
    # What is charged no flops is no step, and without a pace nothing is.
    first, second = record.read(tmp_path / "records")
    assert (first["kind"], first["node"], first["modelled_s"], second["modelled_s"]) == ("paced", "a", 0.1, 0.1)
    assert first["took_s"] < second["took_s"] >= 0.2


def test_strangers_on_the_port_are_ignored() -> None:
    addresses = {"a": "127.81.0.2", "b": "127.81.0.3"}

    async def body() -> Message | Lost | TimedOut:
        inbox = Inbox()
        ours, theirs = Transport("a", addresses, 5608, inbox), Transport("b", addresses, 5608, Inbox())
        ours.start()
        theirs.start()
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.connect("tcp://127.81.0.2:5608")
            for frames in ([b""], [b"GET / HTTP/1.1"], [b"D" + bytes(8), b"no header"]):
                stranger.send_multipart(frames)
            await asyncio.sleep(0.3)
            await theirs.send("a", Message("hello"))
            heard = await inbox.take(None, 10.0)
            stranger.close(linger=0)
        theirs.abandon()
        ours.abandon()
        return heard

    heard = asyncio.run(body())
    assert isinstance(heard, Message)
    assert (heard.sender, heard.kind) == ("b", "hello")
