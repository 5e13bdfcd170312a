"""The way to one peer: a DEALER with its queue, and the watch over its connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio import FIRST_COMPLETED
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

# Whole messages that may wait in a connection's queue at either end, besides what the kernel's buffers hold.
HIGH_WATER = 4
# struct tcp_info of Linux: 8 bytes, then 32-bit words; word 12 is the milliseconds since an ACK last came in.
_LAST_ACK = struct.Struct("=56xI")
_EVENTS = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


@dataclass(frozen=True)
class TimeLimits:
    """When to give up, in real seconds.

    `silence` is how long a peer's kernel may leave our packets unanswered, or a new connection may take. It is 60
    emulated seconds, for a retransmission behind a full modem queue takes its time there, but at least 5 real
    ones: the jitter of a busy host does not shrink with the time scale.
    """

    silence: float
    #: for the last words to a peer that was not connected yet: 5 emulated seconds, at least 1 real one
    greeting: float = 1.0

    @staticmethod
    def of(time_scale: float) -> TimeLimits:
        return TimeLimits(max(5.0, 60.0 * time_scale), max(1.0, 5.0 * time_scale))

    @property
    def handshake_ms(self) -> int:
        """For ZeroMQ's greeting, which may queue behind other traffic; its own default is 30 s."""
        return int(1000 * max(30.0, self.silence))


class Outgoing:
    """A DEALER that is connecting or connected. `on_gone(reason, ended)` is called once, unless closed first.

    `ended` tells that the peer's process closed the connection; else it only could not be reached.
    """

    def __init__(
        self, dealer: zmq.asyncio.Socket, endpoint: str, limits: TimeLimits, on_gone: Callable[[str, bool], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._dealer = dealer
        self._limits = limits
        self._on_gone = on_gone
        self._fd = -1
        self._opened = self._loop.time()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        _configure(dealer, limits)
        self._monitor = dealer.get_monitor_socket(_EVENTS)
        dealer.connect(endpoint)
        self._listener = self._loop.create_task(self._listen())
        self._timer = self._loop.call_later(limits.silence / 4, self._check)

    async def send(self, frames: Sequence[Any]) -> None:
        """Queue a message; waits while the queue is full, and drops the message when the peer is given up."""
        if not self._closed.done():
            # Copied: a role may change its arrays once `send` has returned, while the transport still holds them.
            await self._unless_closed(self._dealer.send_multipart(frames, copy=True))

    async def farewell(self, frames: Sequence[Any]) -> None:
        """Send the last words and wait until they were answered, or the peer is given up."""
        await asyncio.wait({self._connected, self._closed}, timeout=self._limits.greeting, return_when=FIRST_COMPLETED)
        if self._connected.done():
            await self.send(frames)
        if self._connected.done() and not self._closed.done():
            await self._unless_closed(self._dealer.recv_multipart())

    async def _unless_closed(self, doing: Awaitable[Any]) -> None:
        future = asyncio.ensure_future(doing)
        try:
            if not future.done():
                await asyncio.wait({future, self._closed}, return_when=FIRST_COMPLETED)
        finally:
            future.cancel()

    def close(self) -> None:
        """Drop the connection and what is queued on it; idempotent."""
        if not self._closed.done():
            self._closed.set_result(None)
            self._timer.cancel()
            self._listener.cancel()
            self._dealer.disable_monitor()
            self._monitor.close(linger=0)
            self._dealer.close(linger=0)

    async def _listen(self) -> None:
        while True:
            event = parse_monitor_message(await self._monitor.recv_multipart())
            if event["event"] == zmq.EVENT_CONNECTED:
                self._fd = event["value"]
            elif event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED and not self._connected.done():
                self._connected.set_result(None)
            elif self._connected.done():
                self._gone("connection closed", True)
                return

    def _check(self) -> None:
        waited = self._silence() if self._connected.done() else self._loop.time() - self._opened
        if waited > self._limits.silence:
            self._gone(f"no answer for {self._limits.silence:.0f} s of real time", False)
        else:
            self._timer = self._loop.call_later(self._limits.silence / 4, self._check)

    def _silence(self) -> float:
        """Real seconds since the peer's kernel last acknowledged anything of ours."""
        try:
            borrowed = socket.socket(fileno=self._fd)
        except OSError:
            return 0.0  # closed this moment: the event that says so is on its way
        try:
            info = borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK.size)
        except OSError:
            return 0.0
        finally:
            borrowed.detach()
        return float(_LAST_ACK.unpack(info)[0]) / 1000

    def _gone(self, reason: str, ended: bool) -> None:
        self.close()
        self._on_gone(reason, ended)


def _configure(dealer: zmq.asyncio.Socket, limits: TimeLimits) -> None:
    probe = max(1, int(limits.silence / 4))
    options = {
        zmq.LINGER: 0,
        zmq.SNDHWM: HIGH_WATER,
        zmq.RECONNECT_IVL: 50,
        zmq.RECONNECT_IVL_MAX: 1000,
        zmq.HANDSHAKE_IVL: limits.handshake_ms,
        # The probes keep "last ACK" fresh on an idle line. They may fail often: giving up is our decision.
        zmq.TCP_KEEPALIVE: 1,
        zmq.TCP_KEEPALIVE_IDLE: probe,
        zmq.TCP_KEEPALIVE_INTVL: probe,
        zmq.TCP_KEEPALIVE_CNT: 100,
    }
    for option, value in options.items():
        dealer.setsockopt(option, value)
