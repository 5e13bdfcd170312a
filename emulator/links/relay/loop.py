"""The loop that moves packets: epoll for what comes in, a heap of what is to go out, and the lateness of it all."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from heapq import heappop, heappush, heapreplace
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.links.relay.lane import Lane

#: A frame due within `Loop.early` is written now, since a wake-up takes about as long. What is aimed at is this
#: median lateness: early by the time that passed between a frame's coming and its being read, which nobody tells.
AIM = -30e-6
#: limits of `Loop.early`, and the share of an error that is mended each tenth of a second
_EARLIEST, _GAIN = 400e-6, 0.2
#: From so many frames in a tenth of a second on, a nap of this length comes before each look: frames taken in batches
#: cost a fifth to a quarter less CPU, as with a network card's interrupt moderation. Idle links are not held up.
BUSY, NAP = 400, 250e-6
#: frames read from one TAP in one turn, while busy
_TURN = 8
#: descriptors that are looked at in one turn
_EVENTS = 64
#: the largest frame, 64 KiB with its headers
_FRAME = 65536 + 64
_TICK = 0.1


class Lateness:
    """How late frames were written in the last ten seconds: up to 20 samples for each tenth of one."""

    def __init__(self) -> None:
        self._past: deque[list[float]] = deque(maxlen=100)
        self._now: list[float] = []

    def note(self, seconds: float) -> None:
        """One frame's lateness (negative: early)."""
        if len(self._now) < 20:
            self._now.append(seconds)

    def turn(self) -> float | None:
        """A tenth of a second is over; returns the median of its samples, None where there is none."""
        samples = sorted(self._now)
        self._past.append(samples)
        self._now = []
        return samples[len(samples) // 2] if samples else None

    def percentile(self, share: float) -> float | None:
        """That percentile in seconds; None when nothing was written."""
        samples = sorted(sample for part in (*self._past, self._now) for sample in part)
        return max(0.0, samples[min(len(samples) - 1, int(len(samples) * share))]) if samples else None


class Loop:
    """Moves packets of the lanes. Other descriptors can be watched beside; `tick` is called ten times a second."""

    def __init__(self, lanes: Sequence[Lane], tick: Callable[[], None]) -> None:
        self.lateness = Lateness()
        self.running = True
        self.early = 60e-6
        self.nap = 0.0
        self._woken = 0.0
        self._frames = 0
        self._tick = tick
        self._lanes = {lane.source: lane for lane in lanes}
        self._handlers: dict[int, Callable[[], None]] = {}
        self._heap: list[tuple[float, int]] = []
        self._epoll = select.epoll()
        for lane in lanes:
            self._epoll.register(lane.source, select.EPOLLIN)

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Call `handler` when the descriptor can be read."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop watching."""
        del self._handlers[descriptor]
        self._epoll.unregister(descriptor)

    def reschedule(self) -> None:
        """Arrivals have been changed: build the heap anew."""
        self._heap = []
        for lane in self._lanes.values():
            lane.due = inf
            self._expect(lane)

    def _expect(self, lane: Lane) -> None:
        """Look at a lane when its first frame arrives, if that is sooner than it would have been."""
        if lane.queue and lane.queue[0][0] < lane.due:
            lane.due = lane.queue[0][0]
            heappush(self._heap, (lane.due, lane.source))

    def run(self) -> None:
        """Until `running` is false."""
        next_tick = time.monotonic() + _TICK
        while self.running:
            now = self._deliver()
            if now >= next_tick:
                next_tick = now + _TICK
                self._turn()
            self._wait(min(next_tick, self._heap[0][0] - self.early) if self._heap else next_tick)

    def _turn(self) -> None:
        """Ten times a second: learn how long wake-ups take here, and whatever else is due."""
        median = self.lateness.turn()
        self.nap = NAP if self._frames > BUSY else 0.0
        self._frames = 0
        if median is not None:
            # A frame that came during a nap has waited for half of it already.
            error = median - AIM + self.nap / 2
            self.early = min(_EARLIEST, max(0.0, self.early + _GAIN * error))
        self._tick()

    def _deliver(self) -> float:
        """Write all that is due; returns the time."""
        heap, lanes, early = self._heap, self._lanes, self.early
        now = time.monotonic()
        while heap and heap[0][0] <= now + early:
            at, source = heap[0]
            lane = lanes[source]
            if at != lane.due:  # a frame has overtaken the one that this was for
                heappop(heap)
                continue
            self.lateness.note(now - at)
            following = lane.deliver(now + early)
            if following is None:
                lane.due = inf
                heappop(heap)
            else:
                lane.due = following
                heapreplace(heap, (following, source))
            now = time.monotonic()
        return now

    def _wait(self, until: float) -> None:
        """Take in what comes until then, at least what is there."""
        epoll = self._epoll
        if self.nap:
            select.select((), (), (), self.nap)
        slept_from = time.monotonic()
        timeout = until - slept_from
        self._woken = 0.0
        # epoll's own timeout is in whole milliseconds; select's in microseconds.
        if timeout > 0 and select.select((epoll,), (), (), timeout)[0]:
            # What woke us came as long ago as waking takes: on an idle host 0.1 ms at each of a round trip's lines.
            self._woken = min(self.early, time.monotonic() - slept_from)
        for descriptor, events in epoll.poll(0, _EVENTS):
            lane = self._lanes.get(descriptor)
            if lane is None:
                self._handlers[descriptor]()
            elif events & select.EPOLLIN:
                self._read(lane)
            else:
                self._lose(lane, "its interface is gone")

    def _read(self, lane: Lane) -> None:
        """Take in a frame, or all that came during a nap."""
        try:
            for _ in range(_TURN if self.nap else 1):
                data = os.read(lane.source, _FRAME)
                lane.accept(time.monotonic() - self._woken, data)
                self._frames += 1
        except BlockingIOError:
            pass
        except OSError as error:
            self._lose(lane, str(error.strerror))
        self._expect(lane)

    def _lose(self, lane: Lane, why: str) -> None:
        """A TAP that cannot be read any more is given up; the other cables go on."""
        lane.trouble = why
        self._epoll.unregister(lane.source)
