"""Messages between nodes over ZeroMQ: ordered per pair, bounded, and a peer that is gone is noticed.

Every node binds one ROUTER at its own address and opens a DEALER to a peer when it first sends to it or hears from
it. A wire message is [routing id,] envelope, header, buffer...; the routing id is "<node>/<incarnation>", the
envelope (9 bytes) a kind and the incarnation that it is meant for, 0 = any. An incarnation is the start of a process
on the host's monotonic clock, so that a restarted peer is told from its predecessor and never gets its mail.

**Who is lost.** A process that dies closes its sockets: our DEALER's connection drops, at once. A process that ends
in order first says goodbye on each connection and waits for the answer, so that its last messages arrive before its
loss does. A peer whose host is unreachable is found by TCP: the kernel's keepalive asks when the line is idle, and
we read how long ago the peer's kernel last acknowledged anything. ZeroMQ's own heartbeats are off on purpose: a
PING travels behind the message before it and its timer starts anew only with a whole frame, so that a 35 s upload
would pass for a death; a kernel acknowledges while a long frame crawls, and while its process waits for CPU.
"""

from __future__ import annotations

import asyncio
import struct
import time
from functools import partial
from typing import TYPE_CHECKING

import zmq
import zmq.asyncio

from emulator.core.errors import TrainingError
from emulator.training import message as wire
from emulator.training.context import Lost
from emulator.training.peer import HIGH_WATER, Outgoing, TimeLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.training.inbox import Inbox
    from emulator.training.message import Message

DATA, GOODBYE = b"D", b"G"
_ENVELOPE = struct.Struct("!cQ")
# Frames up to this are copied out (aligned, and the receive buffer is freed); larger ones are used in place.
COPY_BELOW = 64 * 1024
# Real milliseconds for the answers to others' goodbyes to leave after ours was answered.
ROUTER_LINGER_MS = 1000


class Transport:
    """One node's sockets. `start` before use, `close` at an orderly end; a process that just ends is noticed too."""

    def __init__(
        self, name: str, addresses: Mapping[str, str], port: int, inbox: Inbox, limits: TimeLimits | None = None
    ) -> None:
        self._name = name
        self._addresses = addresses
        self._port = port
        self._inbox = inbox
        self._limits = limits or TimeLimits.of(1.0)
        self._incarnation = time.monotonic_ns()
        self._zmq = zmq.asyncio.Context()
        self._router = self._zmq.socket(zmq.ROUTER)
        self._out: dict[str, Outgoing] = {}
        #: the newest incarnation heard of each peer, and the newest one known to have ended
        self._heard: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._reader: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Bind and begin to read; the task ends only by an error. Raises TrainingError if that is not possible."""
        endpoint = f"tcp://{self._addresses[self._name]}:{self._port}"
        self._router.setsockopt(zmq.LINGER, 0)
        self._router.setsockopt(zmq.RCVHWM, HIGH_WATER)
        # The same process may reconnect before its old connection is known to be dead.
        self._router.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._router.setsockopt(zmq.HANDSHAKE_IVL, self._limits.handshake_ms)
        try:
            self._router.bind(endpoint)
        except zmq.ZMQError as error:
            self._router.close()
            raise TrainingError(
                f"cannot listen on {endpoint} ({error.strerror})",
                where=self._name,
                fix="end the program that uses the port in this node, or set another port",
            ) from None
        self._reader = asyncio.get_running_loop().create_task(self._read())
        return self._reader

    async def send(self, peer: str, message: Message) -> None:
        """Queue a message; waits while the queue is full. To a peer that is lost, or gets lost, it is dropped."""
        if self._inbox.holds_loss(peer):
            return  # the role does not know yet: it means the one that is gone, not a successor
        outgoing = self._outgoing(peer)
        heard = self._heard.get(peer, 0)
        target = heard if heard > self._ended.get(peer, 0) else 0
        await outgoing.send([_ENVELOPE.pack(DATA, target), *wire.encode(message)])

    async def close(self) -> None:
        """Say goodbye to every peer, wait (for a bounded time) until each has read all that was sent, and close."""
        loop = asyncio.get_running_loop()
        goodbye = [_ENVELOPE.pack(GOODBYE, 0)]
        waits = {loop.create_task(outgoing.farewell(goodbye)) for outgoing in self._out.values()}
        if waits:
            _, late = await asyncio.wait(waits, timeout=self._limits.silence)
            for task in late:
                task.cancel()
        self.abandon(ROUTER_LINGER_MS)

    def abandon(self, linger_ms: int = 0) -> None:
        """Close all sockets at once; what is queued is dropped. Idempotent."""
        if self._reader is not None:
            self._reader.cancel()
        for outgoing in self._out.values():
            outgoing.close()
        self._out.clear()
        self._router.close(linger=linger_ms)
        self._zmq.term()

    def _outgoing(self, peer: str) -> Outgoing:
        if peer not in self._out:
            if peer not in self._addresses:
                raise TrainingError(
                    f"there is no peer {peer!r}", where=self._name, fix=f"send to one of {', '.join(self._addresses)}"
                )
            socket = self._zmq.socket(zmq.DEALER)
            socket.setsockopt(zmq.ROUTING_ID, f"{self._name}/{self._incarnation}".encode())
            endpoint = f"tcp://{self._addresses[peer]}:{self._port}"
            self._out[peer] = Outgoing(socket, endpoint, self._limits, partial(self._gone, peer))
        return self._out[peer]

    async def _read(self) -> None:
        while True:
            await self._inbox.room()
            routing, *frames = await self._router.recv_multipart(copy=False)
            peer, _, incarnation = routing.bytes.decode(errors="replace").rpartition("/")
            if peer not in self._addresses or not frames or len(frames[0]) != _ENVELOPE.size:
                continue  # no role of this run: whatever can reach the port may connect to it
            kind, target = _ENVELOPE.unpack(frames[0].bytes)
            if not self._is_current(peer, int(incarnation)):
                continue
            if kind == GOODBYE:
                await self._router.send_multipart([routing.bytes, b""])
                self._gone(peer, "ended", True)
            elif target in (0, self._incarnation):
                self._inbox.put(wire.decode([_buffer(frame) for frame in frames[1:]], peer))

    def _is_current(self, peer: str, incarnation: int) -> bool:
        """Note who wrote; False for a process that is no more."""
        known, ended = self._heard.get(peer, 0), self._ended.get(peer, 0)
        if incarnation < known or incarnation <= ended:
            return False
        if incarnation > known > ended:
            self._gone(peer, "restarted", True)
        self._heard[peer] = incarnation
        self._outgoing(peer)  # from now on its end is noticed, also if nothing is ever sent to it
        return True

    def _gone(self, peer: str, reason: str, ended: bool) -> None:
        """Give a peer up; if its process ended, nothing of it is heard any more, else it is welcome back."""
        if ended:
            self._ended[peer] = self._heard.get(peer, 0)
        outgoing = self._out.pop(peer, None)
        if outgoing is not None:
            outgoing.close()
        self._inbox.put(Lost(peer, reason))


def _buffer(frame: zmq.Frame) -> bytes | memoryview:
    return frame.bytes if len(frame) <= COPY_BELOW else frame.buffer.toreadonly()
