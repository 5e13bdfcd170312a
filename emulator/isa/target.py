"""The core that things are checked on, and what runs their programs: this host itself, or QEMU."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from emulator.core.errors import HostError, TopologyError, UsageError
from emulator.core.processor import host_arch
from emulator.devices import cores
from emulator.devices.profile import names, profile
from emulator.runtimes import binfmt

#: the processor of all devices that have a core's model
ARCH = "arm64"


@dataclass(frozen=True)
class Target:
    """A device and its core, as QEMU names it."""

    device: str
    core: str

    def __str__(self) -> str:
        return f"{self.core} ({self.device})"

    @property
    def native(self) -> bool:
        """Whether this host has that very core, and no other."""
        return host_arch() == ARCH and cores.of_host() == (self.core,)

    @property
    def environment(self) -> dict[str, str]:
        """What programs need in their environment to run on that core."""
        return {} if self.native else {"QEMU_CPU": self.core}


def of_device(name: str) -> Target:
    """The target that a device is; raises UsageError for an unknown one and for one that has no core of its own."""
    try:
        core = profile(name).cpu_model
    except TopologyError as error:
        raise UsageError(error.what, where="--device", fix=error.fix) from None
    if not core:
        known = ", ".join(one for one in names() if profile(one).cpu_model)
        raise UsageError(f"a {name} has no processor core of its own", where="--device", fix=f"use one of {known}")
    return Target(name, core)


def in_containers(target: Target) -> str:
    """What runs a container's programs on that core ("QEMU 7.2.22"); raises HostError where nothing does."""
    if target.native:
        return "this host"
    if host_arch() == ARCH:
        here = " and ".join(cores.of_host()) or "unknown"
        raise HostError(
            f"containers run on this host's own core ({here}), which is not {target.core}",
            fix="check on a board of that kind, or on an x86 host, where QEMU is exactly that core",
        )
    binfmt.require(ARCH, [("--device", target.core)])
    return binfmt.version(ARCH)


def for_programs(target: Target) -> tuple[list[str], str]:
    """The words before a program's own to run it on that core, and who then runs it.

    Raises HostError where nothing does; registration with the kernel is not needed.
    """
    if target.native:
        return [], "this host"
    found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    entry = binfmt.entry(ARCH)
    if not found and entry is not None and Path(entry.interpreter).exists():
        found = entry.interpreter
    if not found:
        raise HostError(f"no QEMU runs programs for {ARCH} here", fix="apt install qemu-user-static")
    ask = binfmt.asking(ARCH, found)
    status, _ = ask({"QEMU_CPU": target.core})
    if status:
        fix = "install a newer qemu-user-static"
        raise HostError(f"{binfmt.version(ARCH, ask)} does not know the core {target.core!r}", where=found, fix=fix)
    return [found], binfmt.version(ARCH, ask)
