"""What a runtime remembers of its nodes, in `<lab directory>/nodes.json` (written whole, once)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import RuntimeFailure
from emulator.core.state_file import replace_state

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId

VERSION = 1
FILE = "nodes.json"
DISK = "nodes.disk"


@dataclass(frozen=True)
class NodeState:
    """A node as it was made: `pid` is 0 for a switch or router, `inode` that of its network namespace.

    `container` is the id that an engine knows it by, if one made it; `storage` says why its card is not held to its
    speed (empty: it is, or there is none); `processors` are those of this host that it may use (empty: all).
    """

    netns: str
    pid: int = 0
    inode: int = 0
    memory: int = 0
    threads: int = 1
    cwd: str = "/"
    environment: tuple[tuple[str, str], ...] = ()
    has_command: bool = False
    container: str = ""
    storage: str = ""
    processors: tuple[int, ...] = ()


def read(lab: LabId) -> dict[str, NodeState]:
    """All nodes of the lab; none when it has not been made. Raises RuntimeFailure for a damaged file."""
    path = lab.directory / FILE
    try:
        raw = json.loads(path.read_text())
        if raw["version"] != VERSION:
            raise ValueError(f"version {raw['version']!r} is not known")
        return {name: _node(item) for name, item in raw["nodes"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeFailure(
            f"the lab's state cannot be read ({error})", where=str(path), fix=f"run `emu down {lab.name}`"
        ) from None


def _node(raw: dict[str, Any]) -> NodeState:
    pairs = tuple((key, value) for key, value in raw["environment"])
    return NodeState(**raw | {"environment": pairs, "processors": tuple(raw.get("processors", ()))})


def write(lab: LabId, nodes: Mapping[str, NodeState]) -> None:
    """Replace the file; raises HostError when it cannot be written."""
    text = json.dumps({"version": VERSION, "nodes": {name: asdict(node) for name, node in nodes.items()}})
    replace_state(lab.directory / FILE, text)


def shared(lab: LabId, node: str) -> int:
    """Bytes of a warmed process's pages that count as the node's."""
    try:
        return int((lab.node_directory(node) / "shared").read_text())
    except FileNotFoundError:
        return 0


def disk(lab: LabId) -> Path | None:
    """The directory outside the lab's own that holds its nodes' files, if there is one."""
    try:
        return Path((lab.directory / DISK).read_text())
    except FileNotFoundError:
        return None
