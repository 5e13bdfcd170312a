"""Cutting super-packets: against a slow segmenter written from the RFCs, and any run of runs gives the same packets."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from emulator.core.plan import Impairment
from emulator.core.rng import light
from emulator.core.units import Delay, Rate, Size
from emulator.links.model import Direction
from emulator.links.relay.frame import IP, SuperPacket, corrupted, measure

MSS = 100


def internet_sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def super_packet(payload: bytes, ident: int, sequence: int, flags: int, options: int) -> bytes:
    """As the kernel hands it over: the IP checksum is right, the TCP one holds the pseudo-header's sum."""
    tcp_length = 20 + 4 * options
    length = 20 + tcp_length + len(payload)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, ident, 0x4000, 64, 6, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    ip = ip[:10] + struct.pack("!H", 0xFFFF - internet_sum(ip)) + ip[12:]
    pseudo = internet_sum(ip[12:20] + struct.pack("!HH", 6, length - 20))
    tcp = struct.pack("!HHIIBBHHH", 1, 2, sequence, 7, (tcp_length // 4) << 4, flags, 512, pseudo, 0)
    # Its header length is a hint: all that lies in one piece, which may be the payload too (a packet passed on).
    vnet = struct.pack("=BBHHHH", 1, 1, 14 + length, MSS, 34, 16)
    return vnet + bytes(12) + b"\x08\x00" + ip + tcp + b"\1" * 4 * options + payload


def packets(frame: bytes) -> list[tuple[int, int, int, bytes]]:
    """(ident, sequence, flags, payload) of what a frame stands for, after checking the frame itself."""
    tcp = IP + 20
    headers = tcp + (frame[tcp + 12] >> 4) * 4
    length, ident = struct.unpack_from("!HH", frame, IP + 2)
    assert length == len(frame) - IP
    assert internet_sum(frame[IP : IP + 20]) == 0xFFFF
    pseudo = internet_sum(frame[IP + 12 : IP + 20] + struct.pack("!HH", 6, length - 20))
    assert struct.unpack_from("!H", frame, tcp + 16)[0] % 0xFFFF == pseudo % 0xFFFF
    payload, flags = frame[headers:], frame[tcp + 13]
    sequence = struct.unpack_from("!I", frame, tcp + 4)[0]
    if frame[1] == 0:
        assert len(payload) <= MSS
        assert frame[4:6] == b"\0\0"
        return [(ident, sequence, flags, payload)]
    assert len(payload) > MSS
    pieces = [payload[at : at + MSS] for at in range(0, len(payload), MSS)]
    last = len(pieces) - 1
    return [
        (
            (ident + n) & 0xFFFF,
            (sequence + n * MSS) & 0xFFFFFFFF,
            flags & ~(0 if n == last else 0x09) & ~(0x80 if n else 0),
            piece,
        )
        for n, piece in enumerate(pieces)
    ]


@given(
    size=st.integers(MSS + 1, 30 * MSS),
    ident=st.integers(0, 0xFFFF),
    sequence=st.integers(0, 0xFFFFFFFF),
    flags=st.sampled_from([0x10, 0x18, 0x19, 0x98]),
    options=st.integers(0, 10),
    bound=st.integers(1, 40),
)
def test_runs_stand_for_the_same_packets(
    size: int, ident: int, sequence: int, flags: int, options: int, bound: int
) -> None:
    whole = super_packet(bytes(n & 255 for n in range(size)), ident, sequence, flags, options)
    packet = SuperPacket(whole)
    expected = packets(whole)
    assert measure(whole) == (len(expected), packet.ip_bytes(0, packet.packets))
    assert packet.ip_bytes(0, packet.packets) == sum(40 + 4 * options + len(item[3]) for item in expected)
    runs = [(at, min(bound, packet.packets - at)) for at in range(0, packet.packets, bound)]
    told = {struct.unpack_from("=H", packet.run(*run), 2)[0] for run in runs}
    assert told <= {0, 14 + 40 + 4 * options}, "the kernel refuses a frame that is shorter than this"
    assert [item for run in runs for item in packets(bytes(packet.run(*run)))] == expected
    assert sum(packet.ip_bytes(*run) for run in runs) == packet.ip_bytes(0, packet.packets)


figures = st.builds(
    Impairment,
    rate=st.one_of(st.none(), st.floats(1e4, 1e9).map(Rate)),
    delay=st.floats(0, 1).map(Delay),
    jitter=st.floats(0, 1).map(Delay),
    queue=st.integers(0, 100_000).map(Size),
    overhead=st.integers(0, 50),
)
traffic = st.lists(st.tuples(st.floats(0, 0.1), st.integers(28, 1500)), max_size=50)


@given(figures, traffic)
def test_the_hot_path_is_the_definition(impairment: Impairment, sizes: list[tuple[float, int]]) -> None:
    fast, plain = (Direction(impairment, light(1, "same")) for _ in range(2))
    now = 0.0
    for gap, size in sizes:
        now += gap
        finish = plain.enqueue(now, size)
        assert fast.admit(now, size) == (None if finish is None else plain.arrival(finish))


@given(figures, figures, traffic, st.integers(0, 50))
def test_arrivals_keep_order_through_a_change(
    before: Impairment, after: Impairment, sizes: list[tuple[float, int]], turn: int
) -> None:
    line = Direction(before, light(1, "order"))
    now, arrivals = 0.0, [0.0]
    for index, (gap, size) in enumerate(sizes):
        now += gap
        if index == turn:
            line.change(now, after)
        at = line.send(now, size)
        if at is not None:
            assert at >= max(arrivals[-1], now)
            arrivals.append(at)


@given(size=st.integers(1, 3 * MSS), seed=st.integers(0, 1000))
def test_a_corrupted_packet_differs_by_one_bit_from_what_its_receiver_would_accept(size: int, seed: int) -> None:
    """The sum that the kernel left to do is done first, or a receiver would take the damaged packet for sound."""
    part = SuperPacket(super_packet(bytes(range(256)) * 2, 1, 1, 0, 0)[: 24 + 40 + size]).run(0, 1)
    damaged = corrupted(part, light(seed))
    assert len(damaged) == len(part) and damaged[0] & 1 == 0
    whole = part.copy()
    tcp = IP + 20
    length = len(part) - tcp
    pseudo = part[IP + 12 : IP + 20] + struct.pack("!HH", 6, length)
    whole[tcp + 16 : tcp + 18] = b"\0\0"
    body = bytes(whole[tcp:])
    checksum = 0xFFFF - internet_sum(bytes(pseudo) + body + bytes(len(body) % 2))
    struct.pack_into("!H", whole, tcp + 16, checksum or 0xFFFF)
    changed = int.from_bytes(bytes(whole[IP:]), "big") ^ int.from_bytes(bytes(damaged[IP:]), "big")
    assert changed.bit_count() == 1
