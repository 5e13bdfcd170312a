"""A node as a container: what the engine is told, and what it says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.runtimes import caps
from emulator.runtimes.docker import engine, gate
from emulator.runtimes.docker.engine import LABEL_LAB, LABEL_NODE
from emulator.runtimes.namespaces import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from docker.api.client import APIClient

    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan

_LOG = {"type": "json-file", "config": {"max-size": "8m", "max-file": "2"}}


def name_of(lab: LabId, node: str) -> str:
    """A container's name."""
    return f"emu-{lab.name}-{node}"


def labels(lab: LabId, node: str) -> dict[str, str]:
    """The marks by which containers are found again."""
    return {LABEL_LAB: lab.name, LABEL_NODE: node}


def create(
    client: APIClient,
    lab: LabId,
    node: NodePlan,
    image: Mapping[str, Any],
    environment: Sequence[tuple[str, str]],
    binds: Mapping[str, str],
    parent: str | None,
) -> str:
    """Make the container, not started; returns its id. `parent` is the cgroup that it shall lie in.

    `binds` gives the engine's path of each directory or file that is shown, read-only; the engine makes none that is
    missing.
    """
    from docker.types import Mount

    quota, period = caps.quota(node.quota)
    memory = int(node.memory)
    own = (*(image["Config"]["Entrypoint"] or ()), *(image["Config"]["Cmd"] or ()))
    host = client.create_host_config(
        network_mode="none",
        userns_mode="host",  # where the engine remaps users: what emu starts in the container is root there too
        init=True,
        cpu_period=period,
        cpu_quota=quota,
        mem_limit=memory or None,
        memswap_limit=memory or None,
        pids_limit=node.pids,
        shm_size=max(1 << 20, memory // 2) if memory else None,
        cap_drop=["ALL"],
        cap_add=list(CAPABILITIES),
        security_opt=["no-new-privileges"],
        mounts=[Mount(target, source, type="bind", read_only=True) for target, source in binds.items()],
        log_config=_LOG,
        cgroup_parent=parent,
    )
    made: dict[str, Any] = client.create_container(
        image["Id"],
        name=name_of(lab, node.name),
        entrypoint=["/bin/sh", "-c", gate.SCRIPT, "emu"],
        command=[node.restart if node.command else "no", *(node.command or own)],
        hostname=node.name,
        environment=[f"{key}={value}" for key, value in environment],
        labels=labels(lab, node.name),
        host_config=host,
    )
    return str(made["Id"])


def of_lab(lab: LabId) -> list[dict[str, Any]]:
    """All containers of a lab, whatever their state. Raises RuntimeFailure when no engine answers."""
    return engine.containers(f"{LABEL_LAB}={lab.name}")


def last_words(client: APIClient, container: str, lines: int = 5) -> str:
    """The last lines that a container printed, on one line."""
    text = client.logs(container, tail=lines).decode(errors="replace")
    line = " / ".join(line.strip() for line in text.splitlines() if line.strip())[-500:]
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in line)


def environment(image: Mapping[str, Any], given: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What programs in the container see: the image's own, then the node's."""
    own = dict(item.split("=", 1) for item in image["Config"]["Env"] or () if "=" in item)
    return tuple((own | dict(given)).items())
