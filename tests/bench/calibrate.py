"""The calibration of this host: its figures, how far five measurements lie apart, and the seconds that one takes."""

from __future__ import annotations

import os
import time

from emulator.devices import calibration
from emulator.devices.host import cores_here
from emulator.devices.kernels import NAMES
from emulator.devices.quiet import Watch, warnings

RUNS = int(os.environ.get("EMU_BENCH_RUNS", "5"))


def main() -> None:
    watch, runs, took = Watch(), [], []
    for _ in range(RUNS):
        start = time.monotonic()
        runs.append(calibration.measure(NAMES))
        took.append(time.monotonic() - start)
    print(f"{calibration.key()}\nall kernels: {min(took):.1f} to {max(took):.1f} s a run, {RUNS} runs")
    start = time.monotonic()
    calibration.measure(["sgemm"])
    print(f"only what a first `emu up` needs (sgemm): {time.monotonic() - start:.1f} s")
    use = watch.use()
    print(f"meanwhile others used {use.cores:.2f} cores, the hypervisor took {use.steal:.2f}; {use.processes}")
    for text in warnings():
        print(f"warning: {text}")
    cores = cores_here()
    print(f"{'kernel':<16}{'unit':<12}{'one core':>11}{'all busy':>11}{f'all {cores}':>11}   apart (largest - least)")
    for name in NAMES:
        seen = [run[name] for run in runs]
        columns = [[one.one for one in seen], [one.loaded for one in seen], [one.all for one in seen]]
        means = "".join(f"{sum(rates) / len(rates):>11.4g}" for rates in columns)
        apart = ", ".join(f"{(max(rates) - min(rates)) / max(rates):.1%}" for rates in columns)
        print(f"{name:<16}{seen[0].unit:<12}{means}   {apart}")


if __name__ == "__main__":
    main()
