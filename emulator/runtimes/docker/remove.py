"""Removes a lab's containers by their label alone.

Without the SDK: to load it takes as long as to remove five containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.errors import RuntimeFailure
from emulator.runtimes.docker import container, engine
from emulator.runtimes.docker.parallel import in_parallel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.core.lab_id import LabId

_REMOVED, _NOT_THERE, _BEING_REMOVED = 204, 404, 409


def remove_containers(lab: LabId) -> list[str]:
    """Remove all containers that bear the lab's label; returns what was removed.

    Raises HostError when no engine can be used, RuntimeFailure when it refuses or stops answering.
    """
    engine.require()
    return in_parallel(_remove, container.of_lab(lab))


def _remove(made: Mapping[str, Any]) -> str:
    name = str(made["Names"][0]).lstrip("/") if made.get("Names") else str(made["Id"])[:12]
    status, said = engine.order(f"/containers/{made['Id']}?force=1&v=1", "DELETE")
    if status not in (_REMOVED, _NOT_THERE, _BEING_REMOVED):
        text = " ".join(str((said or {}).get("message", f"status {status}")).split())[:300]
        raise RuntimeFailure(f"the engine refused ({text})", where=name, fix="see `docker ps -a` and the engine's log")
    return f"container {name}"
