"""One direction of a netem cable: what the kernel is told, as queueing disciplines one behind the other.

    gate   on the line's device, a netem that holds nothing up: takes packets off their sender's account, and
           doubles those that are to be duplicated
    tbf    its child: the rate, and the queue (drop-tail by bytes; or as its child pfifo by packets, or codel)
    netem  on the port towards the receiver: a packet's time on the line, delay, jitter in order, loss, corruption

tbf lets a packet go when the line is free for it, and netem with the same rate adds the packet's own time on the
line, so a lone packet and the last of a burst arrive when a real line would deliver them (netem alone cannot bound a
queue by bytes: its limit counts packets, those in flight too). netem keeps order under jitter only with a rate: where
order is not to be kept, the port's netem has the rate alone and a second one below it, without a rate, all the rest.
Without the gate a sender's socket is charged for what waits in tbf, so that TCP would see the queue and hold back.
Layouts and numbers are from the kernel's pkt_sched.h.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, NamedTuple

from emulator.core.errors import LinkError
from emulator.core.spread import Spread
from emulator.links.netem_netlink import attribute, attributes, nested, text, u32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.loss import Kind, LossModel
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
_NETEM_DISTRIBUTION, _NETEM_REORDER, _NETEM_CORRUPT, _NETEM_LOSS = 2, 3, 4, 5
_NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64, _NETEM_JITTER64, _NETEM_SEED = 6, 8, 10, 11, 14
#: netem's models of loss: the attribute's number, and which of our parameters the kernel takes, in its order; of "1-h"
#: it takes h
_MODELS: dict[Kind, tuple[int, tuple[int, ...]]] = {
    "4-state": (1, (0, 1, 2, 4, 3)),
    "gilbert-elliott": (2, (0, 1, 2, 3)),
}
_H = 2
_CODEL_TARGET, _CODEL_LIMIT, _CODEL_INTERVAL, _CODEL_ECN = 1, 2, 3, 4
#: the kernel's NETEM_DIST_SCALE: a deviation of 1 in a table
_DEVIATION = 8192
_RATESPEC = "BBHhHI"
_TBF = f"={_RATESPEC}{_RATESPEC}III"
_SIZESPEC = "=BBhiIIII"
_NETEM = "=IIIIII"


@dataclass(frozen=True)
class Line:
    """The numbers of one direction in the kernel's units: bytes/s, bytes, packets, ns, and shares of 2^32 - 1.

    `queued` are the kind and the numbers of tbf's child, the queue: ("bfifo",), ("pfifo", packets) or
    ("codel", packets, target in us, interval in us). `model` is the number of a model of loss, and its parameters.
    `table` are equally likely deviations; neither it nor `seed` is told by every kernel, so they are not compared.
    """

    rate: int
    burst: int
    queue: int
    overhead: int
    delay: int
    jitter: int
    loss: int
    packets: int
    queued: tuple[str | int, ...] = ("bfifo",)
    model: tuple[int, ...] = ()
    duplicate: int = 0
    corrupt: int = 0
    early: int = 0
    gap: int = 0
    reorder: bool = False
    table: Sequence[float] = field(default=(), compare=False)
    seed: int = field(default=0, compare=False)


def line_of(impairment: Impairment, mtu: int, where: str, seed: int = 0) -> Line:
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
        loss=_U32 if impairment.cut else 0 if impairment.loss_model else round(impairment.loss * _U32),
        packets=min(_MOST_PACKETS, 1000 + math.ceil(in_flight / _SMALLEST_PACKET)),
        queued=_queued(impairment, room, packet, at_once),
        model=_model(impairment.loss_model) if impairment.loss_model and not impairment.cut else (),
        duplicate=round(impairment.duplicate * _U32),
        corrupt=round(impairment.corrupt * _U32),
        early=round(impairment.early * _U32),
        gap=impairment.early_gap if impairment.early else 0,
        reorder=impairment.reorder and impairment.jitter > 0,
        table=() if impairment.jitter <= 0 else (impairment.spread or Spread()).table(),
        seed=seed,
    )


def _queued(impairment: Impairment, room: int, packet: int, at_once: int) -> tuple[str | int, ...]:
    if impairment.rate is None:
        return ("bfifo",)
    if impairment.codel is not None:
        target, interval = (max(1, round(time * 1e6)) for time in (impairment.codel.target, impairment.codel.interval))
        return "codel", max(1, room // packet), target, interval
    if impairment.queue_packets is None:
        return ("bfifo",)
    # As with bytes: netem holds what comes at once, and one packet is on the line.
    return "pfifo", max(1, impairment.queue_packets + 1 - at_once // packet)


def _model(model: LossModel) -> tuple[int, ...]:
    number, order = _MODELS[model.kind]
    values = [round(model.parameters[place] * _U32) for place in order]
    if model.kind == "gilbert-elliott":
        values[_H] = _U32 - values[_H]
    return number, *values


def queue(line: Line) -> bytes:
    """The attributes of tbf's child."""
    kind, *numbers = line.queued
    options = struct.pack("=I", line.queue)
    if kind == "pfifo":
        options = struct.pack("=I", numbers[0])
    elif kind == "codel":
        limit, target, interval = (int(number) for number in numbers)
        options = u32(_CODEL_TARGET, target) + u32(_CODEL_LIMIT, limit) + u32(_CODEL_INTERVAL, interval)
        options += u32(_CODEL_ECN, 0)
    return text(_KIND, str(kind)) + attribute(_OPTIONS, options)


def tbf(line: Line) -> bytes:
    """The attributes of the line's queue and rate."""
    rate = (0, 1, 0, 0, 0, min(line.rate, _U32))
    parms = struct.pack(_TBF, *rate, *(0,) * 6, line.queue, 0, 0)
    options = [attribute(_TBF_PARMS, parms), u32(_TBF_BURST, line.burst)]
    if line.rate > _U32:
        options.append(attribute(_TBF_RATE64, struct.pack("=Q", line.rate)))
    return text(_KIND, "tbf") + nested(_OPTIONS, *options)


def gate(line: Line) -> bytes:
    """The attributes of the netem above tbf: with a rate so high that a packet takes 0 ns, and no delay.

    Its size table (the kernel takes one at a device's root only) makes IP bytes plus overhead of frames, for tbf.
    """
    size = struct.pack(_SIZESPEC, 0, 0, 0, line.overhead, 1, 0, 0, 0)
    plain = Line(1 << 50, 0, 0, 0, 0, 0, 0, _MOST_PACKETS, duplicate=line.duplicate, seed=line.seed + 1)
    return nested(_STAB, attribute(1, size)) + _netem(plain)


def netem(line: Line) -> bytes:
    """The attributes of the port's netem."""
    if line.reorder:
        return _netem(Line(line.rate, 0, 0, line.overhead, 0, 0, 0, line.packets))
    return _netem(replace(line, duplicate=0))


def below(line: Line) -> bytes:
    """The attributes of the second netem on the port, where order is not kept."""
    return _netem(replace(line, rate=0, overhead=0, duplicate=0))


def _netem(line: Line) -> bytes:
    ticks = (min(time // _TICK, _U32) for time in (line.delay, line.jitter))
    options = struct.pack(_NETEM, next(ticks), line.packets, line.loss, line.gap, line.duplicate, next(ticks))
    options += attribute(_NETEM_LATENCY64, struct.pack("=q", line.delay))
    options += attribute(_NETEM_JITTER64, struct.pack("=q", line.jitter))
    options += attribute(_NETEM_SEED, struct.pack("=Q", line.seed))
    # The kernel keeps what it is not told of anew, but for the model of loss.
    options += attribute(_NETEM_CORRUPT, struct.pack("=II", line.corrupt, 0))
    if line.gap:
        options += attribute(_NETEM_REORDER, struct.pack("=II", line.early, 0))
    if line.model:
        number, *values = line.model
        options += nested(_NETEM_LOSS, attribute(number, struct.pack(f"={len(values)}I", *values)))
    if line.table:
        deviations = [max(-32768, min(32767, round(value * _DEVIATION))) for value in line.table]
        options += attribute(_NETEM_DISTRIBUTION, struct.pack(f"={len(deviations)}h", *deviations))
    if line.rate > _U32:
        options += attribute(_NETEM_RATE64, struct.pack("=Q", line.rate))
    options += attribute(_NETEM_RATE, struct.pack("=IiIi", min(line.rate, _U32), line.overhead, 0, 0))
    return text(_KIND, "netem") + attribute(_OPTIONS, options)


class Answers(NamedTuple):
    """What a dump tells of one direction's disciplines: their attributes; `queue` and `below` where they are seen."""

    gate: dict[int, bytes]
    tbf: dict[int, bytes]
    queue: dict[int, bytes] | None
    netem: dict[int, bytes]
    below: dict[int, bytes] | None


def read(answers: Answers) -> Line:
    """What the kernel says it has set."""
    options = dict(attributes(answers.tbf[_OPTIONS]))
    parms = struct.unpack_from(_TBF, options[_TBF_PARMS])
    size = struct.unpack_from(_SIZESPEC, dict(attributes(answers.gate[_STAB]))[1])
    lower, more = _netem_options(answers.below or answers.netem)
    rates = _netem_options(answers.netem)[1]
    rate32, overhead, _, _ = struct.unpack_from("=IiIi", rates[_NETEM_RATE])
    rate = _u64(rates, _NETEM_RATE64, rate32)
    tbf_rate = _u64(options, _TBF_RATE64, parms[5])
    gap = lower[3]
    return Line(
        # Two rates or overheads that differ are shown as none, which no setting equals.
        rate=rate if rate == tbf_rate else 0,
        burst=round(parms[13] * _TICK * tbf_rate / 1e9),
        queue=parms[12],
        overhead=overhead if overhead == size[3] else -_U32,
        delay=struct.unpack("=q", more[_NETEM_LATENCY64])[0],
        jitter=struct.unpack("=q", more[_NETEM_JITTER64])[0],
        loss=lower[2],
        packets=lower[1],
        queued=_read_queue(answers.queue),
        model=_read_model(more),
        duplicate=_netem_options(answers.gate)[0][4],
        corrupt=struct.unpack_from("=I", more[_NETEM_CORRUPT])[0] if _NETEM_CORRUPT in more else 0,
        early=struct.unpack_from("=I", more[_NETEM_REORDER])[0] if gap else 0,
        gap=gap,
        reorder=answers.below is not None,
    )


def _netem_options(answer: dict[int, bytes]) -> tuple[tuple[int, ...], dict[int, bytes]]:
    base = answer[_OPTIONS]
    return struct.unpack_from(_NETEM, base), dict(attributes(base[struct.calcsize(_NETEM) :]))


def _read_model(more: dict[int, bytes]) -> tuple[int, ...]:
    """The model of loss; the kernel shows the one of independent losses as none."""
    for number, value in attributes(more.get(_NETEM_LOSS, b"")):
        return number, *struct.unpack(f"={len(value) // 4}I", value)
    return ()


def _read_queue(answer: dict[int, bytes] | None) -> tuple[str | int, ...]:
    if answer is None:
        return ("bfifo",)  # the one that tbf makes by itself is not shown
    kind, options = answer[_KIND].rstrip(b"\0").decode(), answer[_OPTIONS]
    if kind == "codel":
        found = dict(attributes(options))
        return kind, *(_u32(found[number]) for number in (_CODEL_LIMIT, _CODEL_TARGET, _CODEL_INTERVAL))
    return (kind, _u32(options)) if kind == "pfifo" else (kind,)


def _u32(value: bytes) -> int:
    return int(struct.unpack_from("=I", value)[0])


def _u64(found: dict[int, bytes], kind: int, otherwise: int) -> int:
    return int(struct.unpack("=Q", found[kind])[0]) if kind in found else otherwise


def refused(wanted: Line, got: Line) -> list[str]:
    """The names of settings that the kernel did not take as they were given."""
    # The kernel keeps the burst as whole ticks of line time.
    slack = 2 * _TICK * wanted.rate / 1e9 + 1
    near = replace(got, burst=wanted.burst) if abs(got.burst - wanted.burst) <= slack else got
    if near.queued[0] == wanted.queued[0] == "codel":
        # It keeps times in units of 1024 ns.
        close = zip(near.queued[1:], wanted.queued[1:], strict=True)
        if all(abs(int(one) - int(other)) <= 2 for one, other in close):
            near = replace(near, queued=wanted.queued)
    compared = [known.name for known in fields(Line) if known.compare]
    return [name for name in compared if getattr(near, name) != getattr(wanted, name)]
