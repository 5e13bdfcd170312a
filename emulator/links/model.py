"""One direction of a cable as arithmetic: the meaning of an impairment, shared by `relay`, `fake` and the simulator.

A packet waits for the line (drop-tail), takes it for size * 8 / rate, may be lost, and arrives a delay later:

    finish  = max(now, line free) + size * 8 / rate
    arrival = max(arrival of the one before, finish + delay + deviation * jitter)

Order is kept, but for `reorder` (each packet arrives after its own delay) and `early` (some skip it). A lost packet has
used the line. All times are seconds on the caller's clock.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from emulator.links.deviations import deviations
from emulator.links.losses import losses

if TYPE_CHECKING:
    from emulator.core.loss import LossModel
    from emulator.core.spread import Spread

#: IPv4 and TCP headers with time stamps: what a stream pays for each packet within the MTU
TCP_HEADERS = 52


class Uniform(Protocol):
    """A source of floats in [0, 1): a numpy Generator, or `emulator.core.rng.light`."""

    def random(self) -> float: ...


class Figures(Protocol):
    """What is read of an `Impairment`; the relay has its own, without the import of units."""

    @property
    def rate(self) -> float | None: ...
    @property
    def delay(self) -> float: ...
    @property
    def jitter(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def queue(self) -> float: ...
    @property
    def overhead(self) -> int: ...
    @property
    def spread(self) -> Spread | None: ...
    @property
    def reorder(self) -> bool: ...
    @property
    def loss_model(self) -> LossModel | None: ...
    @property
    def duplicate(self) -> float: ...
    @property
    def corrupt(self) -> float: ...
    @property
    def early(self) -> float: ...
    @property
    def early_gap(self) -> int: ...
    @property
    def queue_packets(self) -> int | None: ...
    @property
    def cut(self) -> bool: ...


class Transfer(NamedTuple):
    """When a message takes the line, leaves it free, and has arrived whole."""

    start: float
    free: float
    arrival: float


class Direction:
    """State of one direction. `free` is when the line has sent all it holds, `last` the latest arrival given out.

    `loss` is the share lost, 1 where the line is cut; `overtaking` says that packets may pass one another.
    """

    __slots__ = (
        "_delayed",
        "_deviate",
        "_early",
        "_early_gap",
        "_gap",
        "_losses",
        "_most",
        "_reorder",
        "_rng",
        "_said",
        "_uneven",
        "_waiting",
        "corrupt",
        "delay",
        "duplicate",
        "free",
        "jitter",
        "last",
        "limit",
        "loss",
        "mtu",
        "overhead",
        "overtaking",
        "seconds",
    )

    def __init__(self, impairment: Figures, rng: Uniform, mtu: int = 1500) -> None:
        self._rng = rng
        self.mtu = mtu
        self.free = self.last = -math.inf
        self._delayed = 0
        self._waiting: deque[float] = deque()
        self._said: tuple[object, object] = (None, None)
        self._set(impairment)

    def _set(self, impairment: Figures) -> None:
        self.seconds = 8.0 / impairment.rate if impairment.rate else 0.0  # a byte's time on the line
        self.delay, self.jitter = float(impairment.delay), float(impairment.jitter)
        self.overhead, self.loss = impairment.overhead, 1.0 if impairment.cut else float(impairment.loss)
        self.duplicate, self.corrupt = float(impairment.duplicate), float(impairment.corrupt)
        # Beside the queue, one packet is on the line; counting its remainder in full would need its start.
        # The billionth is for sums of floats that should be equal.
        self.limit = (impairment.queue + self.mtu + self.overhead) * self.seconds * (1 + 1e-9)
        self._most = None if impairment.queue_packets is None or not self.seconds else impairment.queue_packets + 1
        self._early, self._early_gap = float(impairment.early), impairment.early_gap
        self._reorder = impairment.reorder and self.jitter > 0
        self.overtaking = self._reorder or self._early > 0
        self._uneven = self.jitter > 0 or self.overtaking
        self._set_chance(impairment)

    def _set_chance(self, impairment: Figures) -> None:
        """What has not changed goes on where it was: a burst of losses does not end because the delay is set anew."""
        lossy, spread = (self.loss, impairment.loss_model), impairment.spread
        if self._said[0] != lossy:
            self._losses = losses(*lossy, self._rng)
            self._gap = self._losses.gap() if self._losses else 0
        if self._said[1] != (spread, impairment.reorder):
            self._deviate = deviations(spread, self._rng)
        self._said = (lossy, (spread, impairment.reorder))

    def enqueue(self, now: float, nbytes: float, packets: int = 1) -> float | None:
        """The time at which the line has sent these bytes (overhead included), or None if the queue is full."""
        if not self.seconds:
            return now
        line = nbytes * self.seconds
        at = (self.free if self.free > now else now) + line
        if (at - now > self.limit and self.free > now) or (self._most and not self._has_room(now, packets, at)):
            return None
        self.free = at
        return at

    def _has_room(self, now: float, packets: int, finish: float) -> bool:
        """Whether a queue that counts packets takes so many more, which it then has until `finish`."""
        waiting = self._waiting
        while waiting and waiting[0] <= now:
            waiting.popleft()
        if waiting and len(waiting) + packets > (self._most or 0):
            return False
        waiting.extend([finish] * packets)
        return True

    def arrival(self, finish: float) -> float:
        """When what the line has sent at `finish` arrives."""
        if self._early and self._is_early():
            return finish
        at = finish + self.delay
        if self.jitter:
            at = max(finish, at + self._deviate() * self.jitter)
        if self._reorder:
            return at
        if at < self.last:
            return self.last
        self.last = at
        return at

    def _is_early(self) -> bool:
        """As the kernel's netem does: with that probability, after at least so many less one that were not."""
        if self._delayed < self._early_gap - 1 or self._rng.random() >= self._early:
            self._delayed += 1
            return False
        self._delayed = 0
        return True

    def admit(self, now: float, nbytes: float, packets: int = 1) -> float | None:
        """`enqueue` and `arrival` in one, for the relay's hot path: the arrival, or None if the queue is full.

        Afterwards `free` is when these bytes have left the line.
        """
        at = now
        if self.seconds:
            at = (self.free if self.free > now else now) + nbytes * self.seconds
            if at - now > self.limit and self.free > now:
                return None
            if self._most and not self._has_room(now, packets, at):
                return None
        self.free = at
        if self._uneven:
            return self.arrival(at)
        at += self.delay
        if at < self.last:
            return self.last
        self.last = at
        return at

    def survivors(self, packets: int) -> int:
        """How many of the next `packets` pass before one is lost; the lost one is counted off as well."""
        if self._losses is None:
            return packets
        if self._gap >= packets:
            self._gap -= packets
            return packets
        passed, self._gap = self._gap, self._losses.gap()
        return passed

    def is_duplicated(self) -> bool:
        """Whether the next packet is followed by a copy."""
        return self.duplicate > 0 and self._rng.random() < self.duplicate

    def is_corrupted(self) -> bool:
        """Whether the next packet arrives damaged."""
        return self.corrupt > 0 and self._rng.random() < self.corrupt

    def send(self, now: float, nbytes: int) -> float | None:
        """The arrival of one packet of `nbytes` IP bytes handed in at `now`; None = it was lost or found no room."""
        if self.survivors(1):
            return self.admit(now, nbytes + self.overhead)
        self.enqueue(now, nbytes + self.overhead)
        return None

    def transfer(self, now: float, nbytes: int) -> Transfer:
        """A reliable message of `nbytes`, as a train of full TCP packets: never dropped, whatever the queue.

        It waits for the line, and loss p lengthens its time on the line by 1 / (1 - p) (each packet is sent until
        it passes; time-outs and congestion control are not modelled). A loss of 1 never arrives (infinity).
        """
        packets = max(1, math.ceil(nbytes / (self.mtu - TCP_HEADERS)))
        line = (nbytes + packets * (TCP_HEADERS + self.overhead)) * self.seconds
        start = max(now, self.free)
        if self.loss >= 1:
            return Transfer(start, start, math.inf)
        self.free = start + line / (1.0 - self.loss)
        return Transfer(start, self.free, self.arrival(self.free))

    def change(self, now: float, impairment: Figures) -> Rescale:
        """Set another impairment: what waits goes on at the new rate, what has left the line arrives as it would have.

        Returns how times given out before move; a caller that holds packets applies it to each, in order.
        """
        old_seconds, old_delay = self.seconds, self.delay
        self._set(impairment)
        factor = self.seconds / old_seconds if old_seconds else 1.0
        move = Rescale(now, factor, self.delay - old_delay)
        self.free = move.finish(self.free)
        self._waiting = deque(move.finish(finish) for finish in self._waiting)
        return move


class Rescale(NamedTuple):
    """How a change at `now` moves the finish (and with it the arrival) of packets still waiting for the line."""

    now: float
    factor: float
    extra_delay: float

    def finish(self, finish: float) -> float:
        """The new finish of a packet; one that has left the line keeps its own."""
        return finish if finish <= self.now else self.now + (finish - self.now) * self.factor

    def arrival(self, finish: float, arrival: float, previous: float) -> float:
        """The new arrival of a packet with that old finish and arrival, after a packet that arrives at `previous`."""
        if finish <= self.now:
            return max(previous, arrival)
        return max(previous, self.finish(finish), self.finish(finish) + (arrival - finish) + self.extra_delay)
