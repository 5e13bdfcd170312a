"""One direction of a netem cable: what the kernel is told, as queueing disciplines one behind the other.

    gate   on the line's device, a netem that holds nothing up: takes packets off their sender's account
    tbf    its child: the rate, and the queue's bytes (drop-tail)
    netem  on the port towards the receiver: a packet's time on the line, delay, jitter in order, loss

tbf lets a packet go when the line is free for it, and netem with the same rate adds the packet's own time on the
line, so a lone packet and the last of a burst arrive when a real line would deliver them (netem alone cannot bound a
queue by bytes: its limit counts packets, those in flight too). netem keeps order under jitter only with a rate.
Without the gate a sender's socket is charged for what waits in tbf, so that TCP would see the queue and hold back.
Layouts and numbers are from the kernel's pkt_sched.h.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.core.errors import LinkError
from emulator.links.netem_netlink import attribute, attributes, nested, text, u32

if TYPE_CHECKING:
    from emulator.core.plan import Impairment

#: bytes/s of a line without a rate: 100 Gbit/s
UNLIMITED = 12_500_000_000
#: bytes of the Ethernet header, which the kernel counts and a Plan does not
ETHERNET = 14
#: what tbf may hand to netem at once: seconds of line time, or packets where those are more. A bucket of one packet
#: loses every lateness of its timer for good (10 % of 5 Mbit/s in a VM); netem spaces out what comes at once.
_BURST = 0.005
_BURST_PACKETS = 4
_MOST_BYTES = 1 << 28
_MOST_PACKETS = 1_000_000
_SMALLEST_PACKET = 64
_TICK = 64  # nanoseconds; the kernel's PSCHED_SHIFT
_U32 = 0xFFFFFFFF

_KIND, _OPTIONS, _STAB = 1, 2, 8
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64, _NETEM_JITTER64 = 6, 8, 10, 11
_RATESPEC = "BBHhHI"
_TBF = f"={_RATESPEC}{_RATESPEC}III"
_SIZESPEC = "=BBhiIIII"
_NETEM = "=IIIIII"


@dataclass(frozen=True)
class Line:
    """The numbers of one direction in the kernel's units: bytes/s, bytes, packets, ns, and loss of 2^32 - 1."""

    rate: int
    burst: int
    queue: int
    overhead: int
    delay: int
    jitter: int
    loss: int
    packets: int


def line_of(impairment: Impairment, mtu: int, where: str) -> Line:
    """What to tell the kernel. Raises LinkError for a rate so low that bytes/s cannot hold it within 1 %."""
    rate = UNLIMITED if impairment.rate is None else min(UNLIMITED, round(impairment.rate / 8))
    if impairment.rate is not None and abs(rate * 8 - impairment.rate) > 0.01 * impairment.rate:
        raise LinkError(
            f"netem cannot set a rate of {impairment.rate}",
            where=where,
            fix="use a rate from 400 bit/s to 100 Gbit/s, or no rate",
        )
    packet = mtu + impairment.overhead
    room = _MOST_BYTES if impairment.rate is None else min(_MOST_BYTES, int(impairment.queue) + packet)
    at_once = packet * max(1, min(max(_BURST_PACKETS, int(rate * _BURST / packet)), room // 2 // packet))
    in_flight = rate * (impairment.delay + impairment.jitter) + at_once
    return Line(
        rate=rate,
        # The kernel warns where the burst is not a whole frame.
        burst=at_once + ETHERNET,
        # netem holds what comes at once, so tbf holds the rest; a queue of tbf holds at least one packet.
        queue=max(packet, room - at_once),
        overhead=impairment.overhead - ETHERNET,
        delay=round(impairment.delay * 1e9),
        jitter=round(impairment.jitter * 1e9),
        loss=round(impairment.loss * _U32),
        packets=min(_MOST_PACKETS, 1000 + math.ceil(in_flight / _SMALLEST_PACKET)),
    )


def tbf(line: Line) -> bytes:
    """The attributes of the line's queue and rate."""
    rate = (0, 1, 0, 0, 0, min(line.rate, _U32))
    parms = struct.pack(_TBF, *rate, *(0,) * 6, line.queue, 0, 0)
    options = [attribute(_TBF_PARMS, parms), u32(_TBF_BURST, line.burst)]
    if line.rate > _U32:
        options.append(attribute(_TBF_RATE64, struct.pack("=Q", line.rate)))
    return text(_KIND, "tbf") + nested(_OPTIONS, *options)


def gate(line: Line) -> bytes:
    """The attributes of the netem above tbf: with a rate so high that a packet takes 0 ns, and no other effect.

    Its size table (the kernel takes one at a device's root only) makes IP bytes plus overhead of frames, for tbf.
    """
    size = struct.pack(_SIZESPEC, 0, 0, 0, line.overhead, 1, 0, 0, 0)
    return nested(_STAB, attribute(1, size)) + netem(Line(1 << 50, 0, 0, 0, 0, 0, 0, _MOST_PACKETS))


def netem(line: Line) -> bytes:
    """The attributes of the port's netem."""
    old = (min(line.delay // _TICK, _U32), line.packets, line.loss, 0, 0, min(line.jitter // _TICK, _U32))
    options = struct.pack(_NETEM, *old)
    options += attribute(_NETEM_LATENCY64, struct.pack("=q", line.delay))
    options += attribute(_NETEM_JITTER64, struct.pack("=q", line.jitter))
    if line.rate > _U32:
        options += attribute(_NETEM_RATE64, struct.pack("=Q", line.rate))
    options += attribute(_NETEM_RATE, struct.pack("=IiIi", min(line.rate, _U32), line.overhead, 0, 0))
    return text(_KIND, "netem") + attribute(_OPTIONS, options)


def read(gate_answer: dict[int, bytes], tbf_answer: dict[int, bytes], netem_answer: dict[int, bytes]) -> Line:
    """What the kernel says it has set, from the attributes of a dump."""
    options = dict(attributes(tbf_answer[_OPTIONS]))
    parms = struct.unpack_from(_TBF, options[_TBF_PARMS])
    size = struct.unpack_from(_SIZESPEC, dict(attributes(gate_answer[_STAB]))[1])
    base = netem_answer[_OPTIONS]
    _, packets, loss, _, _, _ = struct.unpack_from(_NETEM, base)
    more = dict(attributes(base[struct.calcsize(_NETEM) :]))
    rate32, overhead, _, _ = struct.unpack_from("=IiIi", more[_NETEM_RATE])
    rate = _u64(more, _NETEM_RATE64, rate32)
    tbf_rate = _u64(options, _TBF_RATE64, parms[5])
    return Line(
        # Two rates or overheads that differ are shown as none, which no setting equals.
        rate=rate if rate == tbf_rate else 0,
        burst=round(parms[13] * _TICK * tbf_rate / 1e9),
        queue=parms[12],
        overhead=overhead if overhead == size[3] else -_U32,
        delay=struct.unpack("=q", more[_NETEM_LATENCY64])[0],
        jitter=struct.unpack("=q", more[_NETEM_JITTER64])[0],
        loss=loss,
        packets=packets,
    )


def _u64(found: dict[int, bytes], kind: int, otherwise: int) -> int:
    return int(struct.unpack("=Q", found[kind])[0]) if kind in found else otherwise


def refused(wanted: Line, got: Line) -> list[str]:
    """The names of settings that the kernel did not take as they were given."""
    # The kernel keeps the burst as whole ticks of line time.
    slack = 2 * _TICK * wanted.rate / 1e9 + 1
    near = replace(got, burst=wanted.burst) if abs(got.burst - wanted.burst) <= slack else got
    return [name for name in Line.__dataclass_fields__ if getattr(near, name) != getattr(wanted, name)]
