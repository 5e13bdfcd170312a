"""Where an engine's containers are: they must be this host's, and their cgroups may be ours to name."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import HostError
from emulator.runtimes.docker import controller, engine

if TYPE_CHECKING:
    from docker.api.client import APIClient

_ELSEWHERE = "use the engine of this host (unset DOCKER_HOST; not a desktop's virtual machine), or --runtime embedded"


def by_files(client: APIClient) -> bool:
    """Whether the engine makes cgroups by their files, so that we can say where (systemd takes slices only).

    Raises HostError for an engine whose containers cannot be nodes: it is rootless, or runs on another kernel.
    """
    with engine.told("the engine"):
        info = client.info()
    if any("rootless" in str(option) for option in info.get("SecurityOptions") or ()):
        raise HostError(
            "the engine is rootless, so it can give no caps and no network of ours to a container",
            where=engine.address(),
            fix="use the engine that root runs (unset DOCKER_HOST), or --runtime embedded",
        )
    if info.get("KernelVersion") not in (None, "", platform.release()):
        raise elsewhere(f"it runs on Linux {info['KernelVersion']}, this host is {platform.release()}")
    return bool(info.get("CgroupDriver") == "cgroupfs")


def files(client: APIClient) -> Path | None:
    """Where the engine keeps the containers' files; None where that is not this host's to see."""
    with engine.told("the engine"):
        root = Path(client.info().get("DockerRootDir") or "")
    return root if controller.find() is None and root.is_absolute() and root.is_dir() else None


def is_here(pid: int, container: str) -> bool:
    """Whether a process of this host has that pid and is the container's."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def elsewhere(why: str) -> HostError:
    """The error for an engine whose containers are no processes of this host."""
    return HostError(f"the engine's containers are not on this host ({why})", where=engine.address(), fix=_ELSEWHERE)
