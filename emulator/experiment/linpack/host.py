"""What one core of this host does in HPL, by the very program and problem that the nodes run: the reference by which
their caps are set. What a shared host does drifts within minutes, so it is measured at every run; where that takes long
it is kept in the user's cache.

DGEMM tells a few per cent too much for a problem that leaves panels and row swaps their share; so HPL's own rate on one
core takes the place of DGEMM's, and what several busy cores lose to each other is taken to be the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import clock, threads
from emulator.core.cache import user_cache
from emulator.core.errors import HostError
from emulator.devices import calibration
from emulator.devices.host import cpu_model
from emulator.devices.speed import Speed
from emulator.experiment.linpack.hpl_file import hpl_file
from emulator.experiment.linpack.output import operations, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.devices.host import HostSpeed

#: the middle one of so many runs counts; but a run that took so many real seconds has averaged the host's drift out: it
#: is the only one, and is kept
RUNS, LONG = 3, 20.0
#: one thread, whatever BLAS the program was built with, and no network
ALONE = {
    **threads.ONE,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self",
}
#: FLOP/s; a core slower than that would need longer than is waited for
SLOWEST = 1e8


def host_speed(
    host: HostSpeed, program: Path, n: int, block: int, *, force: bool, say: Callable[[str], None]
) -> tuple[HostSpeed, Speed]:
    """The host with HPL's rate on one core in the place of DGEMM's, and that speed. Raises HostError."""
    dgemm = host.speed("dgemm")
    one, busy = core_rate(program, n, block, force=force, say=say)
    factor = one / dgemm.one
    hpl = replace(dgemm, one=one, loaded=dgemm.loaded * factor, all=dgemm.all * factor, busy=busy or dgemm.busy)
    return replace(host, known={**host.known, "dgemm": hpl}), hpl


def core_rate(program: Path, n: int, block: int, *, force: bool, say: Callable[[str], None]) -> tuple[float, str]:
    """FLOP/s of one core, and who used the host meanwhile ("" = nobody).

    Raises HostError on a busy host, unless forced.
    """
    key = " | ".join([cpu_model(), os.uname().release, program.name, f"n={n}", f"block={block}", "1 thread"])
    kept = _read().get(key)
    if kept is not None:
        return kept, ""
    busy = calibration.busy_by()
    if busy and not force:
        raise HostError(
            f"this host is busy, so that HPL's speed on one core of it cannot be told: {busy}",
            fix="stop that or wait, then try again; `--force` measures all the same, marked",
        )
    say(f"measuring HPL (n = {n}) on one core of this host")
    rate = _measure(program, n, block)
    if operations(n) / rate < LONG:
        rate = statistics.median([rate, *(_measure(program, n, block) for _ in range(RUNS - 1))])
    elif not busy:
        _write({**_read(), key: rate})
    return rate, busy


def _measure(program: Path, n: int, block: int) -> float:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OPENBLAS_", "OMPI_"))}
    environment |= ALONE
    with tempfile.TemporaryDirectory(prefix="emu-hpl-") as folder:
        for name in ("HPL.dat", "hpccinf.txt"):
            Path(folder, name).write_text(hpl_file(n, block, 1, 1), encoding="utf-8")
        limit = 60 + 3 * operations(n) / SLOWEST
        try:
            done = subprocess.run(
                [str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=limit, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = error.strerror if isinstance(error, OSError) else f"no answer within {limit:.0f} s"
            fix = "remove that file, so that it is built anew"
            raise HostError(f"HPL cannot be run on this host ({why})", where=str(program), fix=fix) from None
    result = parse(done.stdout + done.stderr)
    if not result.passed:
        fix = "mend this host's OpenBLAS, or remove that file, so that HPL is built anew"
        raise HostError("HPL's result on this host is wrong (its residual check failed)", where=str(program), fix=fix)
    return result.flops


def _file() -> Path:
    return user_cache() / "hpl" / "host.json"


def _read() -> dict[str, float]:
    try:
        raw = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    kept = raw.items() if isinstance(raw, dict) else ()
    return {key: value for key, value in kept if isinstance(value, float) and 1e6 < value < 1e15}


def _write(entries: dict[str, float]) -> None:
    """Keep the entries, whole or not at all; without a writable cache the next run measures anew."""
    path = _file()
    temporary = path.with_name(f".host-{os.getpid()}-{clock.epoch():.0f}.json")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps(entries, indent=1), encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
