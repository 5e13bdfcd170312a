"""emu in a container of the engine that it drives: what its own container must have been given for that, and which
of its files the engine, whose paths are those of its own host, can give to nodes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from emulator.core import linux
from emulator.core.problem import Problem
from emulator.runtimes.docker import engine

if TYPE_CHECKING:
    from collections.abc import Mapping

#: what is needed beyond the engine's default set
CAPABILITIES = ("NET_ADMIN", "SYS_ADMIN", "SYS_NICE")
_CGROUPS = "/sys/fs/cgroup"
#: an engine binds /etc/hostname from the directory that it keeps for the container (Docker; Podman)
_OWN = re.compile(r"/([0-9a-f]{64})/(?:userdata/)?hostname /etc/hostname ")


@dataclass(frozen=True)
class Controller:
    """Our own container, as the engine describes it."""

    found: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.found["Name"]).lstrip("/")

    def missing(self) -> list[str]:
        """The options of `docker run` without which no lab can be made from here."""
        host = self.found["HostConfig"]
        wanted = {
            "--pid=host": host["PidMode"] == "host",
            "--cgroupns=host": host.get("CgroupnsMode", "") != "private",
            "--device /dev/net/tun": os.access("/dev/net/tun", os.R_OK | os.W_OK),
            **{f"--cap-add {name}": name in _capabilities() for name in CAPABILITIES},
            f"-v {_CGROUPS}:{_CGROUPS}": self._has_cgroups(),
            "--security-opt apparmor=unconfined": self.found.get("AppArmorProfile", "") in ("", "unconfined"),
        }
        return [option for option, given in wanted.items() if not given]

    def host_path(self, path: Path) -> Path | None:
        """The path by which the engine's host knows a file of ours; None for what is in this container alone."""
        inside = PurePosixPath(os.path.realpath(path))
        mounts = [(PurePosixPath(item["Destination"]), str(item["Source"])) for item in self.found["Mounts"]]
        above = [(target, source) for target, source in mounts if inside.is_relative_to(target) and source]
        if not above:
            return None
        target, source = max(above, key=lambda pair: len(pair[0].parts))
        return Path(source) / inside.relative_to(target)

    def _has_cgroups(self) -> bool:
        """Whether the host's own are there: those that the engine shows by itself are read-only."""
        return any(item["Destination"] == _CGROUPS and item["RW"] for item in self.found["Mounts"])


def find() -> Controller | None:
    """Our own container; None where emu runs in none, or in one of another engine."""
    own = _OWN.search(Path("/proc/self/mountinfo").read_text())
    if own is None:
        return None
    try:
        status, found = engine.ask(f"/containers/{own[1]}/json")
    except OSError:
        return None
    return Controller(found) if status == 200 else None


def problem() -> Problem | None:
    """What keeps emu from making labs from its own container."""
    ours = find()
    missing = ours.missing() if ours is not None else []
    if not missing:
        return None
    return Problem(
        f"emu's own container lacks {', '.join(missing)}",
        "start it anew with that (docs/containers.md: the whole line)",
    )


def _capabilities() -> set[str]:
    """Those that this process has."""
    lines = Path("/proc/self/status").read_text().splitlines()
    mask = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
    return {name for name, number in linux.CAPABILITIES.items() if mask >> number & 1}
