"""Why a container does not run (any more), as one sentence: it ended, was removed, or was started anew."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from emulator.core.errors import RuntimeFailure
from emulator.core.words import mebibytes
from emulator.runtimes.docker import container, engine

if TYPE_CHECKING:
    from docker.api.client import APIClient

    from emulator.runtimes.state import NodeState

#: seconds in which an engine sees that a container has ended
_NOTICES = 10
_FIX = "mend its `image:` or `command:`; an image needs /bin/sh and a program that stays"


def reason(client: APIClient, node: str, found: NodeState, oom_kills: int = 0) -> RuntimeFailure:
    """The error for a node whose first process is gone, with its container's exit status and last words.

    `oom_kills` is what its cgroups counted, if they could be asked. Raises RuntimeFailure when the engine is away.
    """
    from docker.errors import NotFound

    made = found.container
    with engine.told(node):
        try:
            state = client.inspect_container(made)["State"]
            if state["Running"] and state["Pid"] == found.pid:  # the engine has not seen it yet
                client.wait(made, timeout=_NOTICES)
                state = client.inspect_container(made)["State"]
            said = container.last_words(client, made)
        except NotFound:
            return removed(node)
    if state["Running"]:
        return RuntimeFailure(
            "its container was started anew, and has no cables", where=node, fix="take the lab down and up again"
        )
    words = f" (it said: {said})" if said else ", and printed nothing"
    return RuntimeFailure(
        f"its container ended with {_status(state, oom_kills, found.memory)}{words}", where=node, fix=_FIX
    )


def removed(node: str, too: str = "") -> RuntimeFailure:
    """The error for a node whose container somebody removed; `too` is what is gone with it."""
    what = "its container has been removed" + (f", and {too} with it" if too else "")
    return RuntimeFailure(what, where=node, fix="take the lab down and up again to have it back")


def _status(state: dict[str, Any], oom_kills: int, cap: int) -> str:
    """The exit status, with what it stands for. The engine's own flag alone misses what `emu exec` started."""
    code = int(state["ExitCode"])
    notes = []
    if code - 128 in set(signal.Signals):
        notes.append(signal.Signals(code - 128).name)
    if oom_kills or state.get("OOMKilled"):
        notes.append(f"out of memory at its cap of {mebibytes(cap)}" if cap else "out of memory")
    if state.get("Error"):
        notes.append(" ".join(str(state["Error"]).split())[:200])
    return f"exit status {code}" + (f", {', '.join(notes)}" if notes else "")
