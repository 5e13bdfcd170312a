"""Runtimes: `choose` gives the one asked for, or the one that works here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.core.errors import HostError, UsageError

if TYPE_CHECKING:
    from emulator.core.plan import Plan
    from emulator.runtimes.base import LabRuntime

NAMES = ("docker", "embedded", "fake")


def choose(name: str | None = None, plan: Plan | None = None) -> LabRuntime:
    """The runtime `name`; when None that of EMU_RUNTIME, else `docker` if an engine has every image of the plan (with
    this emu's code in those that run a role; `passed_over` tells where that is what lacks), else `embedded`.

    Raises UsageError for an unknown name and HostError when it cannot work here.
    """
    name = name or os.environ.get("EMU_RUNTIME")
    if name == "fake":
        return make(name)
    known(name or "embedded")
    if name is None:
        name = "docker" if plan is not None and (_needs_images(plan) or _engine_has_images(plan)) else "embedded"
    runtime = make(name)
    problems = runtime.probe()
    if problems:
        others = "`emu experiment` has a fake runtime that needs nothing"
        if name == "docker" and not (plan is None or _needs_images(plan)):
            others = f"--runtime embedded needs no engine; {others}"
        raise HostError(f"nodes cannot be made here: {problems[0].fact}", fix=f"{problems[0].fix} ({others})")
    return runtime


def of_lab(name: str) -> LabRuntime:
    """The runtime that made a lab which is up. An engine may be away meanwhile: what runs can be entered without it.

    Raises HostError when nodes cannot be entered here.
    """
    if name != "fake":
        choose("embedded")
    return make(name)


def make(name: str) -> LabRuntime:
    """The runtime of a known name, whether it works here or not."""
    if name == "fake":
        from emulator.runtimes.fake import FakeRuntime

        return FakeRuntime()
    if name == "docker":
        from emulator.runtimes.docker.runtime import DockerRuntime

        return DockerRuntime()
    from emulator.runtimes.embedded import EmbeddedRuntime

    return EmbeddedRuntime()


def _needs_images(plan: Plan) -> bool:
    """Whether only containers will do: a node names an image, or runs another processor's programs."""
    from emulator.core.processor import host_arch

    return any(node.image or node.arch not in ("", host_arch()) for node in plan.machines)


def _engine_has_images(plan: Plan) -> bool:
    """Whether containers are the better nodes here: somebody has built or named their images."""
    from emulator.runtimes.docker import engine, image

    names = {image.of(node) for node in plan.machines}
    return engine.is_there() and all(image.is_there(name) for name in names) and image.outdated(plan) is None


def passed_over(asked: str | None, chosen: str, plan: Plan) -> str:
    """Why nodes are not containers though an engine has their images, and nobody asked for a runtime; "" if not so."""
    from emulator.runtimes.docker import engine, image

    if asked or os.environ.get("EMU_RUNTIME") or chosen != "embedded" or not engine.is_there():
        return ""
    old = image.outdated(plan)
    return "" if old is None else f"nodes are no containers, {old.what}; {old.fix}"


def known(name: str) -> None:
    """Raises UsageError where no runtime has that name."""
    if name not in NAMES:
        raise UsageError(f"{name!r} is not a runtime", where="--runtime", fix=f"use one of {', '.join(NAMES)}")
