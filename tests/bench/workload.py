"""A training step of each reference model on a node that really runs it, against the public figure of a Pi 4.

The node's cap comes from `calibrate: train:MODEL`: what the workload model says that the Pi takes, over what this host
takes. The workload model is fitted on two of the five figures; the other three are predictions. `python -m
tests.bench.workload MODEL...` runs some of them.
"""

from __future__ import annotations

import os
import statistics
import sys

from emulator.devices import roofline
from emulator.devices.profile import profile
from emulator.devices.workload import reference, references
from emulator.fidelity.bench import steps

TIME_SCALE = 0.4
REPEATS = 5
DEVICE = "rpi-4"


def main() -> None:
    """Print the table."""
    if os.geteuid() != 0:
        print("workload: needs root")
        return
    device, load = profile(DEVICE), os.getloadavg()[0]
    public, line = roofline.training(device), roofline.of(device)
    assert line is not None
    print(f"{DEVICE}, time scale {TIME_SCALE:g}; seconds for a step of 16 images of 224 x 224; load {load:.2f}")
    print(f"{'model':<20}{'public':>8}{'model says':>12}{'off by':>9}{'in a node':>11}{'off by':>9}")
    got: dict[str, float] = {}
    for name in (sys.argv[1:] if __name__ == "__main__" else []) or references():
        each = sorted(steps(DEVICE, name, TIME_SCALE, REPEATS))
        got[name] = statistics.median(each)
        says, known = line.seconds(reference(name)), public[name]
        kind = "fitted" if name in roofline.FIT else "predicted"
        off, node_off = says / known - 1, got[name] / known - 1
        print(
            f"{name:<20}{known:>8.2f}{says:>12.2f}{off:>+9.1%}{got[name]:>11.2f}{node_off:>+9.1%}  {kind},"
            f" {each[0]:.2f} to {each[-1]:.2f}",
            flush=True,
        )
    errors = [abs(got[name] / public[name] - 1) for name in got if name not in roofline.FIT]
    if errors:
        print(f"predicted ones: off by {statistics.median(errors):.1%} at the median, {max(errors):.1%} at most")
    kept = sorted(got, key=got.__getitem__) == sorted(got, key=public.__getitem__)
    print(f"order by time: {'as published' if kept else 'not as published'}")


if __name__ == "__main__":
    main()
