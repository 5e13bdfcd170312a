"""What a runtime is: start, stop and look into nodes. Six methods, the same meaning everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from emulator.core.units import Delay, Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from emulator.core.enter import EnterToken
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.core.problem import Problem


@dataclass(frozen=True)
class NodeHandle:
    """A node that exists. `netns` is a path that a link driver can setns to; `pid` is its pid 1 (hosts only)."""

    name: str
    netns: str
    pid: int | None = None


@dataclass(frozen=True)
class Usage:
    """What a node has used, in real (host) units, read from its cgroup; counters start at the node's start.

    `memory` and `memory_peak` include `shared` (pages of a warmed process charged elsewhere, added back).
    """

    cpu: Delay = Delay(0)
    throttled: Delay = Delay(0)
    periods: int = 0
    throttled_periods: int = 0
    memory: Size = Size(0)
    memory_peak: Size = Size(0)
    shared: Size = Size(0)
    oom_kills: int = 0
    pids: int = 0
    running: bool = True


class Process(Protocol):
    """A started program, as `subprocess.Popen` has it."""

    pid: int

    def wait(self, timeout: float | None = None) -> int: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int) -> None: ...


@dataclass(frozen=True)
class Command:
    """A program to start in a node; streams are file descriptors of the caller (None = /dev/null).

    `inherit` are further descriptors kept open; `tty` makes stdin the controlling terminal.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    inherit: tuple[int, ...] = ()
    tty: bool = False


class Runtime(Protocol):
    """Makes nodes of a Plan. Everything it makes is journalled first, by the callback given to `create`."""

    name: str

    def probe(self) -> list[Problem]:
        """What keeps this runtime from working here; empty = it works."""
        ...

    def create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], journal: Journal) -> Mapping[str, NodeHandle]:
        """Make the nodes with their caps, read back; `command`s are not started. All or nothing."""
        ...

    def start(self, lab: LabId, node: str, command: Command) -> Process:
        """Start a program in a node. Raises RuntimeFailure when the program cannot be found or the node is gone."""
        ...

    def enter(self, lab: LabId, node: str) -> EnterToken:
        """The token by which another process of ours enters this node."""
        ...

    def usage(self, lab: LabId, nodes: Iterable[str]) -> Mapping[str, Usage]:
        """Usage of the nodes; a node that died has `running=False` and its last readable figures."""
        ...

    def remove(self, lab: LabId) -> list[str]:
        """Remove all nodes of the lab by our marks alone (idempotent; no Plan needed); returns what was removed."""
        ...


class CommandStarter(Protocol):
    """A runtime whose nodes supervise the `command` that the Plan gives them."""

    def start_commands(self, lab: LabId, plan: Plan) -> None:
        """Start the nodes' own commands; their output goes to `log_path`, their restarts go by the Plan. Idempotent."""
        ...

    def require_living(self, lab: LabId, plan: Plan) -> None:
        """Raises RuntimeFailure that says why, where a node has ended before its lab was up."""
        ...

    def log(self, lab: LabId, node: str, follow: bool = False) -> Iterator[bytes]:
        """What a node's program printed, in pieces; with `follow` for ever. Raises RuntimeFailure for no such node."""
        ...


class SharedPages(Protocol):
    """A runtime whose nodes may run processes that share pages with a warmed one outside."""

    def charge_shared(self, lab: LabId, node: str, size: Size) -> None:
        """Lower the node's memory cap by `size` (absolute), and add it back to the usage shown."""
        ...


class LabRuntime(Runtime, CommandStarter, SharedPages, Protocol):
    """All that a lab asks of a runtime; whoever needs less asks for less."""


class Journal(Protocol):
    """Writes down, durably, what is about to be made: kind ("netns", "cgroup", "mount", "process", ...) and name."""

    def __call__(self, kind: str, name: str, /) -> None: ...


def read_log(path: Path, follow: bool) -> Iterator[bytes]:
    """A log file's pieces, as `CommandStarter.log` gives them; none where there is no file (yet)."""
    from emulator.core.clock import RealClock

    clock = RealClock()
    while follow and not path.exists():
        clock.sleep(0.2)
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            data = file.read(65536)
            if data:
                yield data
            elif follow:
                clock.sleep(0.2)
            else:
                return


def log_path(lab: LabId, node: str) -> Path:
    """Where the output of a node's own `command` goes."""
    return lab.node_directory(node) / "log"
