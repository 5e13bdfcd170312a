"""What this host can do for emu, tried rather than guessed, with the remedy for each thing that is missing."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from emulator.core.errors import EmuError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Check:
    """`state` is "ok", "note" (emu works, with a limit) or "bad" (no lab can run); `fix` is the remedy, if any."""

    name: str
    state: Literal["ok", "note", "bad"]
    fact: str
    fix: str = ""


def checks() -> list[Check]:
    """All checks, in the order in which they depend on each other."""
    return [*_host(), *_runtimes(), *_links(), *_training()]


def _host() -> Iterator[Check]:
    release, cores = platform.release(), os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    yield Check(
        "host", "ok", f"{platform.system()} {release}, {cores} cores, {memory:.1f} GiB, Python {sys.version.split()[0]}"
    )
    try:
        from emulator.devices.calibration import doubts
        from emulator.devices.host import calibration
        from emulator.devices.quiet import warnings

        yield Check("calibration", "ok", str(calibration()))
        for doubt in doubts():
            yield Check("calibration", "note", doubt, "emu calibrate")
        for warning in warnings():
            yield Check("calibration", "note", f"this host's speed may change: {warning}")
    except EmuError as error:
        yield Check("calibration", "bad", error.what, error.fix)


def _runtimes() -> Iterator[Check]:
    from emulator.runtimes.embedded import EmbeddedRuntime

    problems = EmbeddedRuntime().probe()
    if not problems:
        yield Check("runtime embedded", "ok", "namespaces, overlay and cgroups work")
    for problem in problems:
        yield Check("runtime embedded", "bad", problem.fact, problem.fix)
    if not problems:
        yield from _caps()
    yield _docker()
    yield _arm64()
    yield from _controller()
    yield Check("runtime fake", "ok", "always works (roles on a virtual clock, no isolation)")


def _caps() -> Iterator[Check]:
    """How exactly nodes are held to their devices' speed: of the processor, and of the card."""
    from emulator.devices import delivery
    from emulator.runtimes import awake, cgroups, storage
    from emulator.runtimes.embedded import view

    if problem := awake.problem():
        yield Check("caps cpu", "note", problem.fact, problem.fix)
    elif not delivery.known().points:
        yield Check(
            "caps cpu", "note", "what small shares deliver is not measured, so they fall short", "emu calibrate"
        )
    else:
        yield Check("caps cpu", "ok", "processors are kept awake; quotas make up for what capped time is not worth")
    place = view.disk_root()
    on = storage.disk(cgroups.detect(), place if place is None or place.is_dir() else place.parent)
    if on.why:
        yield Check("caps storage", "note", f"storage is not capped: {on.why}")
    else:
        yield Check("caps storage", "ok", f"held by the kernel on disk {on.number} ({place})")


def _docker() -> Check:
    from emulator.core.processor import host_arch
    from emulator.runtimes.docker import engine, image

    problem = engine.problem()
    if problem:
        return Check("runtime docker", "note", problem.fact, problem.fix)
    ours = [name for name in (image.PLAIN, image.TRAINING) if image.is_there(f"{name}:{host_arch()}")]
    if not ours:
        return Check(
            "runtime docker",
            "note",
            "an engine answers, without images of emu",
            "emu images build (where no registry is reached: emu images build --base bootstrap)",
        )
    old = [name for name in ours if not image.is_current(f"{name}:{host_arch()}")]
    if old:
        fact = f"an engine answers, but its {' and '.join(old)} hold{'s' * (len(old) == 1)} another version of emu"
        return Check("runtime docker", "note", fact, "emu images build (as they were built before)")
    return Check("runtime docker", "ok", f"an engine answers, and has {', '.join(ours)}")


def _arm64() -> Check:
    """Whether nodes with `arch: arm64` run, as the cores of the devices that ship."""
    from emulator.core.processor import host_arch
    from emulator.devices import cores
    from emulator.devices.profile import names, profile
    from emulator.runtimes import binfmt

    known = [profile(name) for name in names()]
    devices = {one.name: one.cpu_model for one in known if one.cpu_model and not one.extends}
    if host_arch() == "arm64":
        here = cores.of_host()
        alike = [name for name, core in devices.items() if here == (core,)]
        fact = f"run natively, on {' and '.join(here) or 'an unknown core'}"
        if alike:
            return Check("arm64 nodes", "ok", f"{fact}: the core of {', '.join(alike)}")
        return Check("arm64 nodes", "note", f"{fact}: no device's core, so it may take what a device does not")
    for problem in binfmt.problems("arm64"):
        return Check("arm64 nodes", "note", f"do not run: {problem.fact}", problem.fix)
    found, has = binfmt.entry("arm64"), binfmt.cores("arm64")
    by = f"run by {binfmt.version('arm64')}" + (f" ({found.path.name}, flags {found.flags})" if found else "")
    lacking = [f"{core} ({name})" for name, core in devices.items() if core not in has]
    if lacking:
        return Check("arm64 nodes", "note", f"{by}, without {', '.join(lacking)}", "install a newer qemu-user-static")
    return Check("arm64 nodes", "ok", f"{by}, as {', '.join(sorted(set(devices.values())))}")


def _controller() -> Iterator[Check]:
    """Where emu runs in a container of the engine: whether it was given what labs need, and what nodes can share."""
    from emulator.core.lab_id import state_root
    from emulator.runtimes.docker import controller
    from emulator.runtimes.embedded.view import data_directory

    ours = controller.find()
    if ours is None:
        return
    if problem := controller.problem():
        yield Check("controller", "bad", problem.fact, problem.fix)
        return
    shared = {"the labs' state": state_root(), "the data sets": data_directory().parent}
    lost = {what: path for what, path in shared.items() if ours.host_path(path) is None}
    if lost:
        options = " ".join(f"-v {path}:{path}" for path in lost.values())
        yield Check("controller", "note", f"container {ours.name} alone has {' and '.join(lost)}", f"add {options}")
    else:
        yield Check("controller", "ok", f"container {ours.name} has all that labs need")


def _links() -> Iterator[Check]:
    from emulator import links

    usable = []
    for name in ("netem", "relay"):
        problems = links.driver(name).probe()
        if not problems:
            usable.append(name)
            yield Check(f"links {name}", "ok", "works (tried)")
        for problem in problems:
            yield Check(f"links {name}", "note", problem.fact, problem.fix)
    if usable:
        yield Check("link driver", "ok", f"{usable[0]} will be used")
    else:
        yield Check("link driver", "bad", "neither netem nor relay works here", "mend one of the two above")


def _training() -> Iterator[Check]:
    import importlib.metadata
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        yield Check("torch", "note", "not installed, so no training", "pip install 'torch>=2.11,<2.14'")
    else:
        yield Check("torch", "ok", importlib.metadata.version("torch"))
    yield _data()
    here = Path.cwd() if Path("/proc/self/cwd").exists() else Path("/")
    free = _free(here)
    state: Literal["ok", "note"] = "ok" if free > 2 else "note"
    yield Check(
        "disk", state, f"{free:.1f} GiB free in {here}", "" if state == "ok" else "runs need some space: free 2 GiB"
    )


def _data() -> Check:
    from emulator.training.data import cached

    try:
        if cached("mnist"):
            return Check("data mnist", "ok", "in the cache")
    except EmuError as error:
        return Check("data mnist", "note", error.what, error.fix)
    return Check("data mnist", "note", "not in the cache yet; it is fetched on first use", "emu data fetch mnist")


def _free(path: Path) -> float:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize / 2**30
