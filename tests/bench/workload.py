"""A training step of each reference model on a node that really runs it, against the public figure of a Pi 4.

The node's cap comes from `calibrate: train:MODEL`: what the workload model says that the Pi takes, over what this host
takes. The workload model is fitted on two of the five figures; the other three are predictions.
"""

from __future__ import annotations

import os
import statistics

from emulator.experiment.node_steps import NodeStep, measure

TIME_SCALE = 0.4


def main() -> None:
    """Print the table."""
    if os.geteuid() != 0:
        print("workload: needs root")
        return
    load = os.getloadavg()[0]
    print(f"rpi-4 at time scale {TIME_SCALE:g}; seconds for a step of 16 images of 224 x 224; load {load:.2f}")
    print(f"{'model':<20}{'public':>8}{'predicted':>11}{'off by':>9}{'in a node':>11}{'off by':>9}{'cores':>7}")
    rows = []
    for row in measure(time_scale=TIME_SCALE):
        rows.append(row)
        print(_line(row), flush=True)
    errors = [abs(row.error) for row in rows if row.error is not None and not row.fitted]
    print(f"predicted ones: off by {statistics.median(errors):.1%} at the median, {max(errors):.1%} at most")
    order = [sorted(rows, key=key) for key in (lambda row: row.reference or 0.0, lambda row: row.measured)]
    print(f"order by time: {'as published' if order[0] == order[1] else 'not as published'}")


def _line(row: NodeStep) -> str:
    public = row.reference or float("nan")
    kind = "  fitted" if row.fitted else "  predicted"
    predicted, error = row.predicted / public - 1, row.error or 0.0
    return (
        f"{row.model:<20}{public:>8.2f}{row.predicted:>11.2f}{predicted:>+9.1%}{row.measured:>11.2f}{error:>+9.1%}"
        f"{row.cpus:>7.2f}{kind} {row.slower}"
    )


if __name__ == "__main__":
    main()
