"""A lab's identity, and the names of everything that emu makes for it.

Frozen format: state lies in `<state root>/labs/<id>/`, cgroups in `<controller>/emu/<id>/<node>`, and every
process that emu starts for a lab carries EMU_LAB=<id> in its environment. Cleaning goes by these marks alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from emulator.core.errors import UsageError

CGROUP_ROOT = "emu"
ENV_LAB = "EMU_LAB"
NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,39}$")


def state_root() -> Path:
    """Where labs keep their state: EMU_STATE_DIR, else /run/emu for root, else the user's runtime directory."""
    given = os.environ.get("EMU_STATE_DIR")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/emu")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/emu-{os.geteuid()}") / "emu"


@dataclass(frozen=True)
class LabId:
    """A running lab's name, which is its id: one lab of a name at a time on a host."""

    name: str
    root: Path

    @staticmethod
    def of(name: str) -> LabId:
        """The id of the lab `name` under this user's state root; raises UsageError for an unusable name."""
        if not NAME.match(name):
            raise UsageError(f"{name!r} is not a lab name", fix="use up to 40 of a-z, 0-9 and -")
        return LabId(name, state_root())

    @property
    def directory(self) -> Path:
        """The lab's state directory: journal, plan, per-node files, sockets."""
        return self.root / "labs" / self.name

    def node_directory(self, node: str) -> Path:
        """A node's directory under the lab's."""
        return self.directory / "nodes" / node

    @property
    def cgroup(self) -> str:
        """The lab's cgroup, relative to a controller's root."""
        return f"{CGROUP_ROOT}/{self.name}"

    def node_cgroup(self, node: str) -> str:
        """A node's cgroup, relative to a controller's root."""
        return f"{self.cgroup}/{node}"
