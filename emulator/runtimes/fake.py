"""The fake runtime: nodes in memory, for tests and for hosts without root.

It keeps the contract of `Runtime` and none of the isolation. `start` knows a handful of programs (`PROGRAMS`);
any other is "not there", as on a node that lacks it. All state lies in this process and goes with it.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.core.enter import EnterToken
from emulator.core.errors import LabError, RuntimeFailure
from emulator.core.lab_id import ENV_LAB
from emulator.core.units import Delay, Size
from emulator.runtimes.base import NodeHandle, Usage, log_path, read_log

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.core.problem import Problem
    from emulator.runtimes.base import Command, Journal

_CPU_PER_PROGRAM = 0.001
_MEMORY_PER_PROGRAM = 1 << 20
_LEAST_MEMORY = 16 << 20


@dataclass
class FakeProcess:
    """A program that has printed all it will, and ends at a time of the host's clock."""

    pid: int
    status: int
    ends: float
    returncode: int | None = None
    _clock: RealClock = field(default_factory=RealClock)

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        if self.returncode is None and self._clock.now() >= self.ends:
            self.returncode = self.status
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired after `timeout` real seconds."""
        left = self.ends - self._clock.now()
        if self.returncode is None and timeout is not None and left > timeout:
            self._clock.sleep(timeout)
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        if self.returncode is None:
            self._clock.sleep(left)
        ended = self.poll()
        assert ended is not None, "its time to end has passed"
        return ended

    def send_signal(self, sig: int) -> None:
        """End it by a signal; nothing happens when it has ended."""
        if self.poll() is None:
            self.returncode = -sig


@dataclass
class _Node:
    plan: NodePlan
    environment: dict[str, str]
    hosts: str
    processes: list[FakeProcess] = field(default_factory=list)
    started: int = 0
    shared: int = 0
    running: bool = True

    @property
    def alive(self) -> int:
        return sum(process.poll() is None for process in self.processes)


_labs: dict[tuple[str, str], dict[str, _Node]] = {}
_pids = itertools.count(1000)


class FakeRuntime:
    """Implements `emulator.runtimes.base.Runtime` in memory."""

    name = "fake"

    def probe(self) -> list[Problem]:
        """It works everywhere."""
        return []

    def create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], journal: Journal) -> Mapping[str, NodeHandle]:
        """See `Runtime.create`. Raises LabError when the lab is there already."""
        if _key(lab) in _labs:
            raise LabError(
                f"nodes of a lab named {lab.name!r} are there already", fix=f"remove them with `emu down {lab.name}`"
            )
        journal("fake", lab.name)
        hosts = "".join(f"{address}\t{name}\n" for name, address in plan.hosts)
        made = {
            node.name: _Node(node, _environment(lab, plan, node), f"127.0.0.1\tlocalhost\n{hosts}") for node in nodes
        }
        _labs[_key(lab)] = made
        return {name: _handle(lab, name, node) for name, node in made.items()}

    def start_commands(self, lab: LabId, plan: Plan) -> None:
        """Start the nodes' own commands; their output goes to `log_path`. Idempotent."""
        for node in plan.nodes:
            found = _host(lab, node.name) if node.command else None
            if found is None or found.started:
                continue
            log = log_path(lab, node.name)
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                try:
                    _run(found, node.command, {}, file.fileno())
                except RuntimeFailure as error:
                    file.write(f"emu: {error.what}\n".encode())

    def log(self, lab: LabId, node: str, follow: bool = False) -> Iterator[bytes]:
        """See `CommandStarter.log`."""
        _host(lab, node)
        return read_log(log_path(lab, node), follow)

    def signal_init(self, lab: LabId, node: str, sig: int) -> None:
        """End a node by SIGTERM or SIGKILL to its pid 1; raises RuntimeFailure when it is gone."""
        found = _living(lab, node)
        if sig in (signal.SIGTERM, signal.SIGKILL):
            found.running = False
            for process in found.processes:
                process.send_signal(signal.SIGKILL)

    def start(self, lab: LabId, node: str, command: Command) -> FakeProcess:
        """See `Runtime.start`."""
        return _run(_living(lab, node), command.argv, dict(command.env), command.stdout)

    def enter(self, lab: LabId, node: str) -> EnterToken:
        """A token without namespaces: whoever enters stays on this host."""
        found = _living(lab, node)
        return EnterToken(node, environment=tuple(found.environment.items()), threads=found.plan.threads)

    def require_living(self, lab: LabId, plan: Plan) -> None:
        """See `CommandStarter.require_living`."""
        for node in plan.machines:
            self.enter(lab, node.name)

    def usage(self, lab: LabId, nodes: Iterable[str]) -> Mapping[str, Usage]:
        """See `Runtime.usage`; a program is charged a flat 1 ms of CPU and 1 MiB while it runs."""
        return {name: _usage(node) for name in nodes if (node := _node(lab, name)).plan.kind == "host"}

    def charge_shared(self, lab: LabId, node: str, size: Size) -> None:
        """As the embedded runtime does: the node's cap is lowered by `size`, its usage shown with it."""
        found = _host(lab, node)
        if found.plan.memory and found.plan.memory - size < _LEAST_MEMORY:
            raise RuntimeFailure(
                f"its memory of {found.plan.memory} is too little beside the {size} that the framework shares",
                where=node,
                fix="give the node more memory, or use a device with more",
            )
        found.shared = int(size)

    def remove(self, lab: LabId) -> list[str]:
        """See `Runtime.remove`."""
        gone = _labs.pop(_key(lab), {})
        for node in gone.values():
            for process in node.processes:
                process.send_signal(signal.SIGKILL)
        return [f"node {name}" for name in gone]


def _key(lab: LabId) -> tuple[str, str]:
    return str(lab.root), lab.name


def _handle(lab: LabId, name: str, node: _Node) -> NodeHandle:
    return NodeHandle(name, f"fake:{lab.name}/{name}", next(_pids) if node.plan.kind == "host" else None)


def _environment(lab: LabId, plan: Plan, node: NodePlan) -> dict[str, str]:
    own = {ENV_LAB: lab.name, "EMU_NODE": node.name, "EMU_TIME_SCALE": repr(float(plan.time_scale))}
    return own | {"OMP_NUM_THREADS": str(node.threads)} | dict(node.env)


def _node(lab: LabId, name: str) -> _Node:
    try:
        return _labs[_key(lab)][name]
    except KeyError:
        raise RuntimeFailure(
            f"lab {lab.name!r} has no node of that name", where=name, fix="see `emu status` for its nodes"
        ) from None


def _host(lab: LabId, name: str) -> _Node:
    node = _node(lab, name)
    if node.plan.kind != "host":
        raise RuntimeFailure(
            "a switch or router runs no programs", where=name, fix="name a node that is a machine (`emu status`)"
        )
    return node


def _living(lab: LabId, name: str) -> _Node:
    node = _host(lab, name)
    if not node.running:
        raise RuntimeFailure(
            "the node is gone (its pid 1 has ended)", where=name, fix="see `emu status` and `emu logs`"
        )
    return node


def _usage(node: _Node) -> Usage:
    alive = node.alive if node.running else 0
    memory = Size(alive * _MEMORY_PER_PROGRAM + node.shared)
    return Usage(
        cpu=Delay(node.started * _CPU_PER_PROGRAM),
        memory=memory,
        memory_peak=Size(max(memory, bool(node.started) * _MEMORY_PER_PROGRAM + node.shared)),
        shared=Size(node.shared),
        pids=alive + node.running,
        running=node.running,
    )


def _run(node: _Node, argv: Sequence[str], env: dict[str, str], stdout: int | None) -> FakeProcess:
    program = PROGRAMS.get(os.path.basename(argv[0]))  # noqa: PTH119 - a program's name, not a path of this host
    if program is None:
        raise RuntimeFailure(
            f"the program {argv[0]!r} is not there",
            where=node.plan.name,
            fix=f"the fake runtime knows only {', '.join(sorted(PROGRAMS))}; use --runtime embedded for others",
        )
    text, status, seconds = program(node, node.environment | env, list(argv[1:]))
    if text and stdout is not None:
        os.write(stdout, text.encode())
    process = FakeProcess(next(_pids), status, RealClock().now() + seconds)
    node.started += 1
    node.processes = [*(known for known in node.processes if known.poll() is None), process]
    return process


#: what a program prints, its exit status, and the real seconds that it takes
Result = tuple[str, int, float]


def _cat(node: _Node, _env: dict[str, str], names: list[str]) -> Result:
    files = {"/etc/hosts": node.hosts, "/etc/hostname": node.plan.name + "\n"}
    return "".join(files.get(name, "") for name in names), int(any(name not in files for name in names)), 0.0


PROGRAMS: dict[str, Callable[[_Node, dict[str, str], list[str]], Result]] = {
    "true": lambda _node, _env, _arguments: ("", 0, 0.0),
    "false": lambda _node, _env, _arguments: ("", 1, 0.0),
    "echo": lambda _node, _env, arguments: (" ".join(arguments) + "\n", 0, 0.0),
    "hostname": lambda node, _env, _arguments: (node.plan.name + "\n", 0, 0.0),
    "printenv": lambda _node, env, names: (
        "".join(env[n] + "\n" for n in names if n in env),
        int(any(n not in env for n in names)),
        0.0,
    ),
    "sleep": lambda _node, _env, arguments: ("", 0, sum(map(float, arguments))),
    "cat": _cat,
}
