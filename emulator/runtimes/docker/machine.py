"""What a container shows of its machine (`runtimes.identity`): files in the lab's directory, bound by the engine.

They are written once for each kind of machine and do not change: there is no process of ours that could keep
/proc/meminfo and /proc/stat current, so the first shows the cap, and the second is left as the host's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import RuntimeFailure
from emulator.runtimes import cgroups, identity
from emulator.runtimes.cgroups import NodeGroups
from emulator.runtimes.docker import controller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan
    from emulator.runtimes.cgroups import Hierarchies
    from emulator.runtimes.state import NodeState


def write(lab: LabId, nodes: Sequence[NodePlan]) -> dict[str, Mapping[str, str]]:
    """Write the files; for each node, the engine's path of what it shows by path. None for what the engine's host
    does not have, as where emu runs in a container and its state is its own."""
    base, ours = lab.directory / "machines", controller.find()
    known: dict[tuple[identity.Machine, int], Mapping[str, str]] = {}
    found: dict[str, Mapping[str, str]] = {}
    cpuinfo = Path(identity.CPUINFO).read_text()
    for node in nodes:
        machine = identity.machine(node, cpuinfo) if node.memory else None
        if machine is None:
            found[node.name] = {}
            continue
        kind = (machine, int(node.memory))
        if kind not in known:
            place = base / str(len(known))
            seen = place if ours is None else ours.host_path(place)
            known[kind] = {} if seen is None else _write(place, Path(seen), machine, int(node.memory))
        found[node.name] = known[kind]
    return found


def _write(place: Path, seen: Path, machine: identity.Machine, memory: int) -> dict[str, str]:
    place.mkdir(parents=True)
    shown = {}
    for path, text in {**machine.files(), identity.MEMINFO: identity.meminfo(memory)}.items():
        if Path(path).exists():
            name = Path(path).name
            (place / name).write_text(text)
            shown[path] = str(seen / name)
    return shown


def hold_to(hierarchies: Hierarchies, node: NodeState) -> None:
    """Let what runs in a fresh container, and so all that it will start, use the node's processors only."""
    if not node.processors:
        return
    with suppress(RuntimeFailure):  # it has ended, which its start will tell
        for pid in cgroups.processes(NodeGroups.of_process(hierarchies, node.pid).all[0]):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(pid, node.processors)
