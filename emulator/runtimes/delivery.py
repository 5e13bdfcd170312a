"""Measures what a second of CPU time under a cap is worth on this host (`emulator.devices.delivery`), in some 15 s.

Run as a program, `python -m emulator.runtimes.delivery NAME`, it joins the groups that `measure` has made for the lab
of that name, and holds its own work, without a cap and with one by turns, against each other.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from emulator.core import threads
from emulator.core.enter import join_cgroup
from emulator.core.errors import HostError
from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan
from emulator.core.units import Share
from emulator.devices import delivery
from emulator.devices.delivery import Curve
from emulator.runtimes import awake, caps, cgroups
from emulator.runtimes.cgroups import NodeGroups

if TYPE_CHECKING:
    from collections.abc import Callable

_NODE = "probe"
#: seconds of a reading without a cap and with one, and of settling before it; each pair is read so often
_FREE, _CAPPED, _SETTLE, _REPEATS = 0.15, 0.6, 0.1, 3
_TIMEOUT = 120.0


def measure() -> Curve:
    """Measure the curve and keep it; raises HostError where that fails. Other work on the host spoils it."""
    from emulator.runtimes.embedded.remove import remove

    hierarchies = cgroups.detect()
    lab = LabId.of(f"delivery-{os.getpid()}")
    environment = {**os.environ, **threads.ONE}
    command = [sys.executable, "-m", "emulator.runtimes.delivery", lab.name]
    try:
        cgroups.prepare(hierarchies, lab)
        caps.weigh_lab(hierarchies, lab, 1.0)
        for group in NodeGroups.of(hierarchies, lab, _NODE).all:
            group.mkdir()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        measured = {float(share): float(worth) for share, worth in json.loads(done.stdout)}
    except subprocess.TimeoutExpired:
        raise _failed(f"no answer within {_TIMEOUT:.0f} s") from None
    except ValueError:
        raise _failed((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]) from None
    finally:
        remove(lab)
    curve = delivery.smooth(measured)
    delivery.keep(curve)
    return curve


def _failed(reason: str) -> HostError:
    return HostError(f"what CPU caps deliver cannot be measured ({reason})", fix="see `emu doctor`, then try again")


def work() -> Callable[[], None]:
    """A piece of work of about a millisecond: half of it small matrix products, half the interpreter's own."""
    import numpy

    a = numpy.linspace(0.0, 1.0, 64 * 64).reshape(64, 64)
    out = numpy.empty_like(a)

    def run() -> None:
        total = 0
        for number in range(8_000):
            total += number * number
        for _ in range(30):
            numpy.dot(a, a, out=out)

    return run


def rate(piece: Callable[[], None], seconds: float) -> float:
    """Pieces of work in a second of real time."""
    done, start = 0, time.perf_counter()
    while True:
        piece()
        done += 1
        now = time.perf_counter()
        if now - start >= seconds:
            return done / (now - start)


def _main(name: str) -> None:
    hierarchies = cgroups.detect()
    groups = NodeGroups.of(hierarchies, LabId.of(name), _NODE)
    for group in groups.all:
        join_cgroup(str(group / "cgroup.procs"))
    held = awake.hold() if awake.problem() is None else -1
    piece = work()
    found: dict[float, list[float]] = {share: [] for share in delivery.SHARES}
    for _ in range(_REPEATS):
        for share, worths in found.items():
            caps.lift(groups)
            before = rate(piece, _FREE)
            caps.set_all(groups, NodePlan(_NODE, host_cpus=Share(share)))
            rate(piece, _SETTLE)
            capped = rate(piece, _CAPPED)
            caps.lift(groups)
            worths.append(capped / share / ((before + rate(piece, _FREE)) / 2))
    if held >= 0:
        os.close(held)
    sys.stdout.write(json.dumps([(share, statistics.median(worths)) for share, worths in found.items()]))


if __name__ == "__main__":
    _main(sys.argv[1])
