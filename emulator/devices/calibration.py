"""The calibration of this host: its kernels' speeds, measured in programs of their own and kept in the user's cache.

A program of its own, so that the caller never loads a BLAS nor starts its threads (a forked worker of a process that
ran two threads hangs). Each kernel is measured three times: one thread, one thread on every core at once, and one
program with all threads. The best round counts (of a training step's the one in the middle): what else runs on the host
only ever slows a round; and the host is watched meanwhile. What was measured on a busy host is marked, and measured
anew when it is next wanted on a quiet one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core import clock
from emulator.core.cache import user_cache
from emulator.core.errors import HostError, no_interpreter
from emulator.devices.host import cores_here, cpu_model
from emulator.devices.kernels.register import COMPARED, EDITION, NAMES, ONE_THREAD, STEP, TORCH
from emulator.devices.quiet import Watch
from emulator.devices.speed import Speed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

#: real seconds of each kernel on one core, and on all
ALONE, TOGETHER = 0.8, 0.5
#: real seconds over which the host is watched before it is measured
BEFORE = 0.5
TIMEOUT = 120.0
PROGRAM = "emulator.devices.kernels"

Say = Callable[[str], None]


#: the kernels whose speed this process has asked for
_used: set[str] = set()


def on_terminal(text: str) -> None:
    """Tell a person who waits."""
    sys.stderr.write(f"emu: {text}\n")


def speeds(kernels: Iterable[str], *, say: Say = on_terminal, fresh: list[str] | None = None) -> dict[str, Speed]:
    """The speeds of these kernels: from the cache, else measured. Raises HostError.

    `fresh` is told those that were measured now. On a busy host they are measured all the same, and marked.
    """
    asked = list(kernels)
    _used.update(asked)
    known = _known(asked)
    if missing := [name for name in asked if name not in known]:
        with _alone(say):
            # Another process may have measured them while this one waited.
            known |= _known(missing)
            if missing := [name for name in missing if name not in known]:
                say(f"measuring this host's {', '.join(missing)}, once")
                found = measure(missing)
                keep(found)
                known |= found
                if fresh is not None:
                    fresh += missing
    return {name: known[name] for name in asked}


def one_core_anew(kernel: str) -> Speed:
    """A kernel's speed with one core of this host measured anew, which drifts within minutes; what cores lose to each
    other stays as it was measured before. Raises HostError."""
    before = cached().get(kernel)
    if before is None:
        return speeds([kernel])[kernel]
    with _alone(on_terminal):
        watch = Watch()
        one = _run([kernel], ALONE)[kernel]
        rate = one[_counts(kernel)]
        factor = rate / before.one
        found = replace(
            before,
            one=rate,
            loaded=before.loaded * factor,
            all=before.all * factor,
            spread=_spread(one),
            busy=watch.use().why_busy(cores_here()) or before.busy,
            when=clock.epoch(),
        )
        keep({kernel: found})
    return found


def whole(*, force: bool = False, anew: bool = False, say: Say = on_terminal) -> dict[str, Speed]:
    """The speed of every kernel that models need, and anew those of others that a busy host spoilt. The host has to be
    quiet before and meanwhile. Kernels whose library is not installed are left out. Raises HostError, naming who uses
    the host, unless it is forced."""
    wanted = [name for name in NAMES if name not in COMPARED]
    names = [name for name in wanted if name not in TORCH or find_spec("torch") is not None]
    # Others are measured when they are asked for; those that a busy host spoilt are made good here.
    names += [name for name, one in cached().items() if one.busy and name not in names]
    known = {} if anew else {name: one for name, one in cached().items() if not one.busy or force}
    missing = [name for name in names if name not in known]
    if not missing:
        return {name: known[name] for name in names}
    with _alone(say):
        if not force and (by := busy_by()):
            raise _busy(by)
        say(f"measuring {', '.join(missing)}: about {round(_expected(missing))} s")
        found = measure(missing)
        by = next((one.busy for one in found.values() if one.busy), "")
        if by and not force:
            raise _busy(by)
        keep(found)
    known |= found
    return {name: known[name] for name in names}


def doubts(*, of_used: bool = False) -> list[str]:
    """Reasons to doubt the figures that are kept, a sentence each: who used the host while they were measured. With
    `of_used` only those that this process has asked for."""
    by: dict[str, list[str]] = {}
    for name, one in cached().items():
        if one.busy and (name in _used or not of_used):
            by.setdefault(one.busy, []).append(name)
    return [
        f"this host's {', '.join(names)} was measured while it was busy ({who}); `emu calibrate` measures again"
        for who, names in by.items()
    ]


def busy_by(seconds: float = BEFORE) -> str:
    """Who uses this host now, watched for so long; "" = nobody to speak of."""
    watch = Watch()
    clock.RealClock().sleep(seconds)
    return watch.use().why_busy(cores_here())


def _busy(by: str) -> HostError:
    return HostError(
        f"this host is busy, so that its speed cannot be told: {by}",
        fix="stop that or wait, then try again; `emu calibrate --force` measures all the same, marked",
    )


def _expected(kernels: Sequence[str]) -> float:
    """Real seconds that measuring takes, libraries' start and one round more than asked included."""
    return 3 + 1.5 * sum(2.5 if name in TORCH else 1.8 for name in kernels)


def measure(kernels: Sequence[str]) -> dict[str, Speed]:
    """Measure kernels now, and note who else used the host. Raises HostError."""
    cores, watch = cores_here(), Watch()
    alone = _run(kernels, ALONE)
    loaded = alone if cores == 1 else _run(kernels, TOGETHER, "--copies", str(cores))
    threaded = [name for name in kernels if name not in ONE_THREAD]
    together = _run(threaded, TOGETHER, "--threads", str(cores)) if cores > 1 and threaded else loaded
    by, now = watch.use().why_busy(cores), clock.epoch()
    found = {}
    for name in kernels:
        which = _counts(name)
        one, each = alone[name], loaded[name][which] / cores
        total = together[name][which] if name in threaded else loaded[name][which]
        found[name] = Speed(one["unit"], one[which], each, total, _spread(one), by, now)
    return found


def _counts(kernel: str) -> str:
    """Which round counts: of a few rounds of seconds each the best is luck, and nodes are held to what a step takes as
    a rule."""
    return "median" if kernel.startswith(STEP) else "best"


def _spread(one: Mapping[str, Any]) -> float:
    return round(1 - float(one["median"]) / float(one["best"]), 4)


def _run(kernels: Sequence[str], seconds: float, *options: str) -> dict[str, dict[str, Any]]:
    import subprocess  # 10 ms that a cached figure need not cost

    command = [sys.executable, "-m", PROGRAM, *kernels, "--seconds", str(seconds), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        answer = json.loads(done.stdout)
        if answer["left_out"]:
            reason = "; ".join(sorted(set(answer["left_out"].values())))
        else:
            return {name: answer["kernels"][name] for name in kernels}
    except PermissionError:
        raise no_interpreter() from None
    except subprocess.TimeoutExpired:
        reason = f"no answer within {TIMEOUT:.0f} s"
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
    raise HostError(
        f"this host's speed cannot be measured ({reason})",
        where=f"python -m {PROGRAM} {' '.join(kernels)}",
        fix="run that command to see why, and mend the installation",
    )


def cache_file() -> Path:
    """Where the figures are kept: emu/calibration.json in the user's cache directory."""
    return user_cache() / "calibration.json"


def key() -> str:
    """What the figures hold for: they are measured anew where any of it changes."""
    parts = [cpu_model(), f"{cores_here()} cores", os.uname().release, f"kernels {EDITION}"]
    return " | ".join([*parts, f"numpy {_version('numpy')}", f"BLAS {_blas()}", f"torch {_version('torch')}"])


def cached() -> dict[str, Speed]:
    """All figures that are kept for this host as it is."""
    found = {}
    for name, raw in _read().get(key(), {}).items():
        try:
            found[name] = Speed.from_json(raw)
        except (KeyError, TypeError, ValueError):
            continue
    return found


def keep(found: Mapping[str, Speed]) -> None:
    """Add figures, whole or not at all; without a writable cache each run measures anew, which is harmless."""
    here, entries = key(), _read()
    entries[here] = entries.get(here, {}) | {name: asdict(one) for name, one in found.items()}
    path = cache_file()
    temporary = path.with_name(f".calibration-{os.getpid()}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(json.dumps(entries, indent=1))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return


def _known(kernels: Sequence[str]) -> dict[str, Speed]:
    """Those that are kept; what was measured on a busy host only as long as the host is busy."""
    found = {name: one for name, one in cached().items() if name in kernels}
    if any(one.busy for one in found.values()) and not busy_by():
        found = {name: one for name, one in found.items() if not one.busy}
    return found


def _read() -> dict[str, dict[str, Any]]:
    try:
        raw = json.loads(cache_file().read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {name: value for name, value in raw.items() if isinstance(value, dict)}


def _alone(say: Say) -> AbstractContextManager[object]:
    """Two that measure at once would disturb each other; without a writable cache nothing keeps them apart."""
    from emulator.core.lock import locked

    place = cache_file().with_suffix(".lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    except OSError:
        return nullcontext()
    return locked(place, lambda: say("waiting for another process that measures this host"))


def _version(package: str) -> str:
    """A package's version, read from its files: importing numpy costs 0.2 s and starts threads."""
    import re

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        if package == "numpy":
            raise HostError("numpy is not installed", fix="run `make setup`")
        return "none"
    try:
        text = (Path(spec.origin).parent / "version.py").read_text()
    except OSError:
        return "unknown"
    match = re.search(r"^(?:short_|__)?version(?:__)?\s*=\s*[\"']([^\"']+)", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _blas() -> str:
    """The BLAS that numpy was built with, as its files tell."""
    import re

    spec = find_spec("numpy")
    if spec is None or spec.origin is None:
        return "none"
    try:
        text = (Path(spec.origin).parent / "__config__.py").read_text()
    except OSError:
        return "unknown"
    match = re.search(r"\"blas\":\s*\{.*?\"name\":\s*\"([^\"]*)\".*?\"version\":\s*\"([^\"]*)\"", text, re.DOTALL)
    return f"{match[1]} {match[2]}" if match else "unknown"
