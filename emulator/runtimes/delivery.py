"""Measures what a second of CPU time under a cap is worth on this host (`emulator.devices.delivery`), in some 25 s.

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
from emulator.core.allocator import keep_freed_memory
from emulator.core.enter import join_cgroup
from emulator.core.errors import HostError
from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan
from emulator.core.units import Share
from emulator.devices import calibration, delivery
from emulator.devices.delivery import Curve
from emulator.runtimes import awake, caps, cgroups
from emulator.runtimes.cgroups import NodeGroups

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = Callable[[], object]

_NODE = "probe"
#: CPU seconds of a reading without a cap, and of settling under one; each is read so often
_FREE, _SETTLE, _REPEATS = 0.09, 0.01, 4
#: real and CPU seconds at the least of a reading under a cap
_PERIODS, _CAPPED = 0.3, 0.06
_TIMEOUT = 180.0


def ensure(say: Callable[[str], None]) -> bool:
    """Measure the curves where they are not known yet and can be measured; `say` is told that, or why not. Whether they
    were measured now, so that a Plan of before lacks them."""
    from emulator.runtimes.embedded import EmbeddedRuntime

    if delivery.known().points or awake.problem() is not None or EmbeddedRuntime().probe():
        return False
    by = calibration.busy_by()
    if by:
        say(
            f"what small shares of a processor are worth cannot be measured while this host is busy ({by}), so capped "
            "nodes do up to a quarter less than asked (`emu calibrate` measures it)"
        )
        return False
    say("measuring what small shares of a processor are worth here, once: about 25 s")
    measure()
    return True


def measure() -> dict[str, Curve]:
    """Measure the curves and keep them; raises HostError where that fails. Other work on the host spoils it."""
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
        measured = {
            str(kind): {float(share): float(worth) for share, worth in points}
            for kind, points in json.loads(done.stdout).items()
        }
    except subprocess.TimeoutExpired:
        raise _failed(f"no answer within {_TIMEOUT:.0f} s") from None
    except ValueError:
        raise _failed((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]) from None
    finally:
        remove(lab)
    curves = {kind: delivery.fit(points) for kind, points in measured.items()}
    delivery.keep(curves)
    return curves


def _failed(reason: str) -> HostError:
    return HostError(f"what CPU caps deliver cannot be measured ({reason})", fix="see `emu doctor`, then try again")


def matrices() -> Work:
    """A product of two matrices in double precision, of some 6 ms, as HPL is made of."""
    import numpy

    a = numpy.linspace(0.0, 1.0, 512 * 512).reshape(512, 512)
    out = numpy.empty_like(a)
    return lambda: numpy.dot(a, a, out=out)


def convolutions() -> Work:
    """Convolutions of three kinds forward and backward, each for about a third of some 30 ms. What they lose together
    is what whole steps were measured to lose: at 0.05, 0.1, 0.2 and 0.4 of a core they are worth 0.71, 0.81, 0.89 and
    0.95, MobileNetV3-large 0.72, 0.81, 0.90 and 0.96, a small CNN of MNIST 0.72, 0.83, 0.91 and 0.94.

    Raises ImportError without torch.
    """
    from emulator.devices.kernels import conv

    depthwise, small, large = conv.depthwise(1), conv.small(1), conv.large(1, batch=1)

    def run() -> None:
        depthwise.run()
        large.run()
        for _ in range(3):
            small.run()

    return run


def cost(piece: Work, seconds: float, real: float = 0.0) -> float:
    """CPU seconds of a piece of work, over that many CPU seconds and real ones at the least."""
    done, begin, start = 0, time.perf_counter(), time.process_time()
    while True:
        piece()
        done += 1
        used = time.process_time() - start
        if used >= seconds and time.perf_counter() - begin >= real:
            return used / done


def worths(piece: Work, groups: NodeGroups) -> list[tuple[float, float]]:
    """What a CPU second is worth, by share."""
    found: dict[float, list[float]] = {share: [] for share in delivery.SHARES}
    for _ in range(_REPEATS):
        for share, worth in found.items():
            caps.lift(groups)
            before = cost(piece, _FREE)
            caps.set_all(groups, NodePlan(_NODE, host_cpus=Share(share)))
            cost(piece, _SETTLE)
            capped = cost(piece, _CAPPED, _PERIODS)
            caps.lift(groups)
            worth.append((before + cost(piece, _FREE)) / 2 / capped)
    return [(share, statistics.median(worth)) for share, worth in found.items()]


def _main(name: str) -> None:
    groups = NodeGroups.of(cgroups.detect(), LabId.of(name), _NODE)
    for group in groups.all:
        join_cgroup(str(group / "cgroup.procs"))
    held = awake.hold() if awake.problem() is None else -1
    keep_freed_memory()
    found = {delivery.MATRIX: worths(matrices(), groups)}
    try:
        found[delivery.TRAINING] = worths(convolutions(), groups)
    except ImportError:
        found[delivery.TRAINING] = found[delivery.MATRIX]
    if held >= 0:
        os.close(held)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1])
