"""`emu fidelity`: measure every row, keep it in a run's directory as it comes, and report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core.errors import HostError
from emulator.devices.profile import profile
from emulator.devices.quiet import warnings
from emulator.experiment.host import describe
from emulator.experiment.run import recorded
from emulator.experiment.signals import orderly, outcome
from emulator.fidelity.bench import RUNTIME, Bench
from emulator.fidelity.measure import rows
from emulator.results import fidelity, store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from emulator.results.store import Run

#: of the labs that are made
SEED = 0


def run(devices: Sequence[str], *, quick: bool, time_scale: float, out: Path, say: Callable[[str], None]) -> Run:
    """Measure the devices' figures; the run has rows.json, summary.json and report.html. Raises DeviceError for a
    device that is not known, HostError where nodes cannot be made, and what a lab raises."""
    from emulator import links, runtimes
    from emulator.runtimes import delivery

    known = [profile(name) for name in dict.fromkeys(devices)]
    if os.geteuid() != 0:
        raise HostError("a fidelity report needs nodes, and making them needs root", fix="run it with sudo")
    runtimes.choose(RUNTIME)
    driver = links.choose().name
    found = store.create(out, "-".join(["fidelity", *(one.name for one in known)]), SEED)
    bench, kept = Bench(time_scale), []
    with orderly(outcome(found.directory)), recorded(found):
        asked = {"devices": [one.name for one in known], "quick": quick, "time_scale": time_scale, "seed": SEED}
        found.write("experiment.json", {"kind": fidelity.KIND, **asked})
        found.write(fidelity.ROWS, {"rows": []})
        found.update(engine="emulation", runtime=RUNTIME, link_driver=driver, host=describe(), warnings=warnings())
        delivery.ensure(say)
        for one in known:
            for row in rows(one, quick, bench, say):
                kept.append(row.to_json())
                found.write(fidelity.ROWS, {"rows": kept})
                found.update(marks=[f"this host was busy before a figure was measured: {by}" for by in bench.busy])
    return found
