"""One direction of a relayed cable: frames read from one TAP, held as long as the model says, written to the other."""

from __future__ import annotations

import os
from bisect import insort
from collections import deque
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from emulator.core.loss import LossModel
from emulator.core.spread import Spread
from emulator.links.model import Direction
from emulator.links.relay.frame import IP, SuperPacket, corrupted, measure

if TYPE_CHECKING:
    from typing import Any

    from emulator.links.model import Uniform

#: a burst written in one go takes at most this much of the line's time (or two packets)
BURST = 0.001
#: A line that was late by more than this (the host had stalled us) catches up on no more: the rest of the stall is
#: time in which the line stood still. So no second carries more than 101 % of the rate.
CATCH_UP = 0.003
#: bytes that one direction may hold, in the queue and in flight; more is dropped as unasked
HELD = 256 << 20
_arrival = itemgetter(0)


class Setting(NamedTuple):
    """An `Impairment` as it comes out of JSON, without the import of its units."""

    rate: float | None
    delay: float
    jitter: float
    loss: float
    queue: float
    overhead: int
    spread: Spread | None = None
    reorder: bool = False
    loss_model: LossModel | None = None
    duplicate: float = 0.0
    corrupt: float = 0.0
    early: float = 0.0
    early_gap: int = 1
    queue_packets: int | None = None
    cut: bool = False

    @staticmethod
    def read(raw: dict[str, Any]) -> Setting:
        """From a JSON object; raises KeyError or TypeError."""
        known = {name: raw[name] for name in Setting._fields}
        if known["spread"]:
            known["spread"] = Spread(**known["spread"] | {"samples": tuple(known["spread"]["samples"])})
        if known["loss_model"]:
            known["loss_model"] = LossModel(known["loss_model"]["kind"], tuple(known["loss_model"]["parameters"]))
        return Setting(**known)


class Lane:
    """State of one direction. `queue` holds (arrival, finish, packets, IP bytes, frame) in order of arrival.

    `due` is the loop's: when it will look at this lane next.
    """

    __slots__ = (
        "_one_by_one",
        "_rng",
        "bytes",
        "due",
        "held",
        "lost",
        "model",
        "most",
        "mtu",
        "overflowed",
        "packets",
        "queue",
        "silent",
        "source",
        "target",
        "trouble",
        "unasked",
    )

    def __init__(self, source: int, target: int, setting: Setting, mtu: int, rng: Uniform) -> None:
        self.source, self.target, self.mtu = source, target, mtu
        self._rng = rng
        self.model = Direction(setting, rng, mtu)
        self.due = inf
        self.queue: deque[tuple[float, float, int, int, bytes | bytearray]] = deque()
        self.packets = self.bytes = self.lost = self.overflowed = self.unasked = self.held = 0
        self.trouble = ""
        self.silent = False
        self._bind(setting)

    def _bind(self, setting: Setting) -> None:
        """How many packets of a super-packet stay together: a millisecond of line, and half the queue at most."""
        model = self.model
        # What befalls packets one at a time is decided for each.
        self._one_by_one = bool(model.duplicate or model.corrupt or model.overtaking)
        self.most = 64
        if not setting.rate:
            return
        line = int(setting.rate / 8 * BURST / self.mtu)
        room = int(setting.queue / 2 / self.mtu)
        if setting.queue_packets is not None:
            room = min(room, setting.queue_packets // 2)
        bound = max(1, min(64, max(2, line), room))
        # On a line that is not slow, half as much again is better than a second frame for a few packets.
        self.most = bound if line < 2 else bound * 3 // 2

    def accept(self, now: float, data: bytes) -> None:
        """Take a frame read at `now`: whole where it is short enough for one burst, and no packet of it is lost."""
        if self.silent:
            return
        if self._one_by_one:
            self._accept_each(now, data)
            return
        if not data[1]:
            packets, nbytes = 1, len(data) - IP
        else:
            packets, nbytes = measure(data)
        if packets > self.most or (self.model.loss and packets > 1):
            self._accept_super(now, SuperPacket(data))
        elif self.model.loss and not self.model.survivors(1):
            self._lose(now, nbytes)
        else:
            self._hold(now, packets, nbytes, data)

    def _accept_each(self, now: float, data: bytes) -> None:
        """Take the packets of a frame one by one, with copies of those that are duplicated."""
        parts: list[bytes | bytearray] = [data]
        if data[1]:
            packet = SuperPacket(data)
            parts = [packet.run(index, 1) for index in range(packet.packets)]
        for part in parts:
            for _ in range(1 + self.model.is_duplicated()):
                if not self.model.survivors(1):
                    self._lose(now, len(part) - IP)
                else:
                    damaged = self.model.is_corrupted()
                    self._hold(now, 1, len(part) - IP, corrupted(part, self._rng) if damaged else part)

    def _accept_super(self, now: float, packet: SuperPacket) -> None:
        """Take a super-packet in bursts, each ended early by a packet that is lost."""
        first = 0
        bound = -(-packet.packets // -(-packet.packets // self.most))
        while first < packet.packets:
            count = min(bound, packet.packets - first)
            passed = self.model.survivors(count)
            if passed:
                self._hold(now, passed, packet.ip_bytes(first, passed), packet.run(first, passed))
            if passed < count:
                self._lose(now, packet.ip_bytes(first + passed, 1))
                passed += 1
            first += passed

    def _lose(self, now: float, nbytes: int) -> None:
        """A lost packet has used the line, if there was room for it."""
        if self.model.enqueue(now, nbytes + self.model.overhead) is None:
            self.overflowed += 1
        else:
            self.lost += 1

    def _hold(self, now: float, packets: int, nbytes: int, data: bytes | bytearray) -> None:
        """Keep a frame until it arrives, if there is room for it."""
        model = self.model
        arrival = model.admit(now, nbytes + packets * model.overhead, packets)
        if arrival is None:
            self.overflowed += packets
        elif self.held > HELD:
            self.unasked += packets
        else:
            self.held += nbytes
            entry = (arrival, model.free, packets, nbytes, data)
            if model.overtaking and self.queue and arrival < self.queue[-1][0]:
                insort(self.queue, entry, key=_arrival)
            else:
                self.queue.append(entry)

    def silence(self) -> None:
        """A node at one end has died: what is held and what comes from now on goes nowhere, and is not counted."""
        self.silent, self.trouble, self.held = True, "", 0
        self.queue.clear()

    def deliver(self, until: float) -> float | None:
        """Write all that arrives by `until`; returns when the next frame does."""
        if self.queue and until - self.queue[0][0] > CATCH_UP and self.model.seconds and not self.model.overtaking:
            self._postpone(until - CATCH_UP)
        queue = self.queue
        while queue:
            arrival, _, packets, nbytes, data = queue[0]
            if arrival > until:
                return arrival
            queue.popleft()
            self.held -= nbytes
            try:
                os.write(self.target, data)
            except OSError as error:
                self.unasked += packets
                self.trouble = str(error.strerror)
            else:
                self.packets += packets
                self.bytes += nbytes
        return None

    def _postpone(self, at: float) -> None:
        """The line stood still until `at`: what waits comes at its rate from there on, until a gap makes up for it."""
        model, waiting = self.model, list(self.queue)
        for index, (arrival, finish, packets, nbytes, data) in enumerate(waiting):
            if index:
                at += (nbytes + packets * model.overhead) * model.seconds
            if at <= arrival:
                break
            finish += at - arrival
            waiting[index] = (at, finish, packets, nbytes, data)
            model.free, model.last = max(model.free, finish), max(model.last, at)
        self.queue = deque(waiting)

    def change(self, now: float, setting: Setting) -> None:
        """Set another impairment: what waits goes on at the new rate, what is in flight arrives as it would have."""
        move = self.model.change(now, setting)
        self._bind(setting)
        last = -inf
        moved: list[tuple[float, float, int, int, bytes | bytearray]] = []
        for arrival, finish, packets, nbytes, data in self.queue:
            at = move.arrival(finish, arrival, -inf if self.model.overtaking else last)
            moved.append((at, move.finish(finish), packets, nbytes, data))
            last = max(last, at)
        if self.model.overtaking:
            moved.sort(key=_arrival)
        self.queue = deque(moved)
        self.model.last = last

    def counters(self) -> tuple[int, int, int, int, int]:
        """Packets, bytes, lost, overflowed, unasked."""
        return self.packets, self.bytes, self.lost, self.overflowed, self.unasked
