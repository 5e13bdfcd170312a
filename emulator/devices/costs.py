"""What emulation costs this host, and how much of the host may be planned with: measured figures, each with its source.

All were taken on a shared virtual machine of two cores (AMD EPYC, Linux 6.18); another host differs, which the
head-room is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.core.plan import Impairment, Plan

#: share of the host's cores that may be planned with: beyond it timing suffers
USE = 0.8
#: share beyond which it cannot hold
LIMIT = 1.0

# Host CPU seconds, measured with AdaComp on wan-10, 26 updates a second: for each byte that a process moves
# (copies, checks, the kernel's TCP), and for each byte that the relay moves over one cable.
ENDPOINT = 3e-9
CABLE = 8e-9

# The relay's host CPU seconds for each byte and each frame over one cable, acknowledgements included, and for waking
# up, of which a busy relay does less for each frame. Fitted to one flow over two cables of 2 Mbit/s to 1 Gbit/s and to
# wan-10's worst: measured 0.04 of a core at 2 Mbit/s, 0.18 at 10, 0.31 at 50, 0.29 at 200, 0.36 at 1000, fitted 0.03,
# 0.14, 0.24, 0.28, 0.56. It is meant to be on the safe side for many fast lines at once.
BYTE, FRAME, WAKE, MOST_WAKING = 1e-9, 30e-6, 140e-6, 0.2
#: a relay's frame holds about this much of its line's time, real seconds, but two packets, and what offload makes
BURST, TWO_PACKETS, LARGEST = 0.0015, 3000, 65536

#: host cores of the controller, which samples the lab, and of the relay that nobody uses
OWN = 0.05
#: real seconds by which the relay's slowest packet in a hundred is late on a busy host (docs/limits.md)
LATENESS = 0.0004
#: emulated seconds of lateness that never matter, and the share of the shortest delay that does not
NEVER_LATE, OF_DELAY = 0.002, 1 / 20


def lateness_allowed(plan: Plan) -> float:
    """Emulated seconds of lateness that do not matter: 2 ms, or a twentieth of the shortest delay set."""
    delays = [float(way.delay) for link in plan.links for way in (link.a_to_b, link.b_to_a) if way.delay]
    return max(NEVER_LATE, min(delays, default=0.0) * OF_DELAY)


def carrying(traffic: Iterable[tuple[Impairment, float]], time_scale: float) -> float:
    """Host cores of the relay that carries these emulated bits per second through these directions of cables.

    A slow line's frames are small, so it costs more for each byte than a fast one.
    """
    moved = frames = 0.0
    for way, rate in traffic:
        line = LARGEST if way.rate is None else float(way.rate) / time_scale / 8 * BURST
        real = rate / time_scale / 8
        moved += real
        frames += real / min(LARGEST, max(TWO_PACKETS, line))
    return moved * BYTE + frames * FRAME + min(MOST_WAKING, frames * WAKE)
