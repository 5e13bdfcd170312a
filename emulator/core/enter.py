"""The recipe by which a process of ours becomes a process of a node.

A runtime gives an `EnterToken` for each node; whoever holds it (the CLI's `exec`, the warmed training process)
calls `fork_into`. Order: fork, join cgroups, setns, fork again (a PID namespace applies to children only), drop
the bounding set and capabilities, no_new_privs, set threads.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class EnterToken:
    """What it takes to enter a node; plain data, so that it travels as JSON.

    `namespaces` pairs a kind (net, pid, mnt, uts, ipc) with a path to setns to, in that order; `cgroups` are the
    cgroup.procs files to write the process id to; `environment` is set in full (nothing is inherited).
    """

    node: str
    namespaces: tuple[tuple[str, str], ...] = ()
    cgroups: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    capabilities: tuple[str, ...] = ()
    threads: int = 1
    cwd: str = "/"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> EnterToken:
        raw = json.loads(text)
        pairs = ("namespaces", "environment")
        return EnterToken(
            **raw
            | {key: tuple((a, b) for a, b in raw[key]) for key in pairs}
            | {"cgroups": tuple(raw["cgroups"]), "capabilities": tuple(raw["capabilities"])}
        )
