"""What this host is worth: its cores, its memory, and one core's SGEMM, measured once and kept.

The SGEMM is numpy's on one thread with OpenBLAS's own choice of kernels (OPENBLAS_CORETYPE and its like are
removed from the environment: a wrong one halves the figure or dies of an illegal instruction). torch's SGEMM
comes out within 10 % of it (docs/topology.md has the figures), and training is what the caps are for.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from emulator.core.cache import user_cache
from emulator.core.errors import HostError, no_interpreter
from emulator.core.processor import host_arch
from emulator.core.units import Size

TIMEOUT = 60.0
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
#: what stands in for a measurement where the speed does not matter, as when a file is only checked
NOMINAL_GFLOPS = 50.0


@dataclass(frozen=True)
class HostSpeed:
    """This host. `gflops` is one core's SGEMM; `cached` = read from the cache, not measured now. `arch` is the
    processor, as images name it: programs for another one are emulated here."""

    gflops: float
    cores: int
    memory: Size
    cached: bool = False
    model: str = ""
    arch: str = field(default_factory=host_arch)

    def __str__(self) -> str:
        how = "measured before" if self.cached else "measured now"
        return f"{self.cores} cores of {self.gflops:.1f} GFLOPS (SGEMM, {how}), {self.memory / 2**30:.1f} GiB"


def calibration(*, remeasure: bool = False) -> HostSpeed:
    """This host's worth; takes about 2 s the first time and 1 ms after. Raises HostError if it cannot be measured.

    The figure is kept by CPU model, kernel and numpy version; a damaged or unwritable cache only costs the time.
    """
    key = _key()
    host = nominal()
    known = None if remeasure else _read().get(key)
    if known is not None:
        return replace(host, gflops=known, cached=True)
    gflops = _measure()
    _write({**_read(), key: gflops})
    return replace(host, gflops=gflops)


def nominal() -> HostSpeed:
    """This host's cores and memory with a made-up speed; for checking files, never for caps."""
    return HostSpeed(NOMINAL_GFLOPS, len(os.sched_getaffinity(0)), _memory(), model=cpu_model())


def cache_file() -> Path:
    """Where the measurement is kept: emu/host.json in the user's cache directory."""
    return user_cache() / "host.json"


def cpu_model() -> str:
    """The processor's name as the kernel shows it."""
    match = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1].strip() if match else os.uname().machine


def _memory() -> Size:
    match = re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if match is None:
        raise HostError("/proc/meminfo shows no MemTotal", fix="mount /proc")
    return Size(int(match[1]) * 1024)


def _key() -> str:
    return " | ".join([cpu_model(), os.uname().release, f"numpy {_numpy_version()}"])


def _numpy_version() -> str:
    """numpy's version, read from its files: importing it would cost 0.2 s and start threads."""
    spec = find_spec("numpy")
    if spec is None or spec.origin is None:
        raise HostError("numpy is not installed", fix="run `make setup`")
    text = (Path(spec.origin).parent / "version.py").read_text()
    match = re.search(r"^(?:short_)?version\s*=\s*[\"']([^\"']+)", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _read() -> dict[str, float]:
    try:
        raw = json.loads(cache_file().read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {key: value for key, value in raw.items() if isinstance(value, float) and 0.1 < value < 1e5}


def _write(entries: dict[str, float]) -> None:
    """Keep the entries, whole or not at all; without a writable cache each run measures anew, which is harmless."""
    path = cache_file()
    temporary = path.with_name(f".host-{os.getpid()}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps(entries, indent=1))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return


def _measure() -> float:
    import subprocess  # 10 ms that a cached figure need not cost

    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    environment |= dict.fromkeys(ONE_THREAD, "1")
    command = [sys.executable, "-m", "emulator.devices.sgemm"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        return float(json.loads(done.stdout)["gflops"])
    except PermissionError:
        raise no_interpreter() from None
    except subprocess.TimeoutExpired:
        reason = f"no answer within {TIMEOUT:.0f} s"
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
    raise HostError(
        f"this host's speed cannot be measured ({reason})",
        where="python -m emulator.devices.sgemm",
        fix="run that command to see why, and mend the numpy installation",
    )
