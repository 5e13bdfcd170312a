"""`EmbeddedRuntime`: nodes out of Linux namespaces, an overlay over the host's root, and cgroups."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.enter import EnterToken
from emulator.core.errors import HostError, LabError, RuntimeFailure
from emulator.core.state_file import replace_state
from emulator.core.units import Size
from emulator.runtimes.base import NodeHandle, Usage, log_path
from emulator.runtimes.embedded import caps, cgroups, rootfs, state, view
from emulator.runtimes.embedded.keeper import Job, launch
from emulator.runtimes.embedded.probe import problems
from emulator.runtimes.embedded.remove import remove
from emulator.runtimes.embedded.start import start
from emulator.runtimes.embedded.state import NodeState

if TYPE_CHECKING:
    from emulator.core.enter import NodeProcess
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.runtimes.base import Command, Journal
    from emulator.runtimes.embedded.terminal import TerminalProcess

_KINDS = ("net", "pid", "mnt", "uts", "ipc")
#: what pid 1 and a small program need
_LEAST_MEMORY = 16 << 20


class EmbeddedRuntime:
    """Implements `emulator.runtimes.base.Runtime`. It holds no state of its own: all of it lies with the lab."""

    name = "embedded"

    def __init__(self) -> None:
        self._found: cgroups.Hierarchies | None = None

    @property
    def _hierarchies(self) -> cgroups.Hierarchies:
        if self._found is None:
            self._found = cgroups.detect()
        return self._found

    def probe(self) -> list[str]:
        """See `Runtime.probe`."""
        return problems()

    def create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], journal: Journal) -> Mapping[str, NodeHandle]:
        """See `Runtime.create`. Raises LabError when the lab is there already, HostError and RuntimeFailure."""
        if state.read(lab) or any((root / lab.cgroup / nodes[0].name).exists() for root in self._hierarchies.roots):
            raise LabError(
                f"nodes of a lab named {lab.name!r} are there already", fix=f"remove them with `emu down {lab.name}`"
            )
        if (disk := view.disk_root()) is not None:
            journal("directory", str(disk / lab.name))
            replace_state(lab.directory / state.DISK, str(disk / lab.name))
        for root in self._hierarchies.roots:
            journal("cgroup", str(root / lab.cgroup))
        try:
            return self._create(lab, plan, nodes)
        except BaseException:
            remove(lab)
            raise

    def _create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        shown = view.of_host()
        view.data_directory().mkdir(parents=True, exist_ok=True)
        cgroups.prepare(self._hierarchies, lab)
        layers = rootfs.prepare(lab.directory / "fs", shown, rootfs.hosts_file(plan.hosts), state.disk(lab))
        made = {node.name: self._state(lab, plan, node, shown.cwd) for node in nodes}
        jobs = [self._job(lab, node, made[node.name]) for node in nodes]
        results, tell = os.pipe()
        wait, go = os.pipe()
        try:
            launch(lab, layers, jobs, tell, wait)
            os.close(tell)
            os.close(wait)
            tell = wait = -1
            hosts = [node for node in nodes if node.kind == "host"]
            caps.weigh_lab(self._hierarchies, lab, sum(float(node.host_cpus) for node in hosts))
            for node in hosts:
                caps.apply(self._hierarchies, lab, node)
            os.close(go)
            go = -1
            answers = _collect(results, {node.name for node in nodes})
        finally:
            for fd in (results, tell, wait, go):
                if fd >= 0:
                    os.close(fd)
        for name, answer in answers.items():
            made[name] = replace(made[name], netns=answer["netns"], pid=answer.get("pid", 0), inode=answer["inode"])
        state.write(lab, made)
        return {name: NodeHandle(name, node.netns, node.pid or None) for name, node in made.items()}

    def _state(self, lab: LabId, plan: Plan, node: NodePlan, cwd: str) -> NodeState:
        if node.kind != "host":
            return NodeState("")
        environment = view.environment(lab, plan, node)
        return NodeState(
            "",
            memory=int(node.memory),
            threads=node.threads,
            cwd=cwd,
            environment=environment,
            has_command=bool(node.command),
        )

    def _job(self, lab: LabId, node: NodePlan, made: NodeState) -> Job:
        if node.kind != "host":
            return Job(node.name, is_host=False)
        log = log_path(lab, node.name)
        if node.command:
            log.parent.mkdir(parents=True, exist_ok=True)
        return Job(
            node.name,
            is_host=True,
            cgroups=tuple(str(root / lab.cgroup) for root in self._hierarchies.roots),
            memory=made.memory,
            command=node.command,
            restart=node.restart,
            environment=made.environment,
            cwd=made.cwd,
            log=str(log),
        )

    def start_commands(self, lab: LabId, plan: Plan) -> None:
        """Start the nodes' own commands (of those in `plan`); their output goes to `log_path`. Idempotent."""
        for node in plan.nodes:
            if node.command:
                self.signal_init(lab, node.name, signal.SIGUSR1)

    def signal_init(self, lab: LabId, node: str, sig: int) -> None:
        """Signal a node's pid 1 (SIGTERM ends the node, SIGKILL at once); raises RuntimeFailure when it is gone."""
        found = self._host(lab, node)
        try:
            handle = os.pidfd_open(found.pid)
        except ProcessLookupError:
            raise _gone(node) from None
        try:
            if not _lives(found):
                raise _gone(node)
            signal.pidfd_send_signal(handle, sig)
        finally:
            os.close(handle)

    def start(self, lab: LabId, node: str, command: Command) -> NodeProcess | TerminalProcess:
        """See `Runtime.start`."""
        return start(self.enter(lab, node), command)

    def enter(self, lab: LabId, node: str) -> EnterToken:
        """See `Runtime.enter`; raises RuntimeFailure for a node that is unknown or runs no programs."""
        found = self._host(lab, node)
        return EnterToken(
            node=node,
            namespaces=tuple((kind, f"/proc/{found.pid}/ns/{kind}") for kind in _KINDS),
            inodes=(found.inode,),
            cgroups=tuple(str(group / "cgroup.procs") for group in self._groups(lab, node)),
            environment=found.environment,
            capabilities=view.CAPABILITIES,
            threads=found.threads,
            cwd=found.cwd,
        )

    def usage(self, lab: LabId, nodes: Iterable[str]) -> Mapping[str, Usage]:
        """See `Runtime.usage`. Raises RuntimeFailure for an unknown node; switches have no usage and are left out."""
        known = state.read(lab)
        found = {}
        for name in nodes:
            node = known.get(name)
            if node is None:
                raise _unknown(lab, name)
            if node.pid:
                found[name] = self._usage(lab, name, node)
        return found

    def _usage(self, lab: LabId, name: str, node: NodeState) -> Usage:
        try:
            return caps.usage(self._hierarchies, lab, name, running=_lives(node), shared=state.shared(lab, name))
        except FileNotFoundError:
            raise _gone(name) from None

    def charge_shared(self, lab: LabId, node: str, size: Size) -> None:
        """Count `size` bytes of shared pages, charged elsewhere, as the node's own (absolute, not added up).

        The pages of a warmed process that a node's processes share are charged to whoever touched them first, so
        the node's cap is lowered by them, and `usage` adds them back to `memory`, `memory_peak` and `shared`. A
        node without a memory cap only has them added. Raises RuntimeFailure when the cap is too small for them.
        """
        found = self._host(lab, node)
        left = found.memory - int(size)
        if found.memory and left < _LEAST_MEMORY:
            raise RuntimeFailure(
                f"its memory of {Size(found.memory)} is too little beside the {size} that the framework shares",
                where=node,
                fix="give the node more memory, or use a device with more",
            )
        if found.memory:
            caps.set_memory(self._hierarchies, lab, node, left)
        replace_state(lab.node_directory(node) / "shared", str(int(size)))

    def remove(self, lab: LabId) -> list[str]:
        """See `Runtime.remove`."""
        return remove(lab)

    def _groups(self, lab: LabId, node: str) -> list[Path]:
        return cgroups.node_groups(self._hierarchies, lab, node)

    def _host(self, lab: LabId, name: str) -> NodeState:
        node = state.read(lab).get(name)
        if node is None:
            raise _unknown(lab, name)
        if not node.pid:
            raise RuntimeFailure(
                "a switch or router runs no programs", where=name, fix="name a node that is a machine (`emu status`)"
            )
        return node


def _unknown(lab: LabId, name: str) -> RuntimeFailure:
    return RuntimeFailure(
        f"lab {lab.name!r} has no node of that name", where=name, fix="see `emu status` for its nodes"
    )


def _gone(name: str) -> RuntimeFailure:
    return RuntimeFailure("the node is gone (its pid 1 has ended)", where=name, fix="see `emu status` and `emu logs`")


def _lives(node: NodeState) -> bool:
    """Whether its pid 1 still runs; the keeper holds the network namespace, so the inode cannot be another's."""
    try:
        return os.stat(f"/proc/{node.pid}/ns/net").st_ino == node.inode  # noqa: PTH116
    except (FileNotFoundError, ProcessLookupError):
        return False


def _collect(results: int, names: set[str]) -> dict[str, dict[str, Any]]:
    """Read an answer for every node; raises RuntimeFailure for the first that failed or never answered."""
    answers: dict[str, dict[str, Any]] = {}
    with os.fdopen(os.dup(results), "rb") as pipe:
        for line in pipe:
            answer = json.loads(line)
            if "error" in answer:
                raise _failed(answer)
            answers[answer["node"]] = answer
            if answers.keys() == names:
                return answers
    raise RuntimeFailure(
        "its first process was killed while it was made",
        where=", ".join(sorted(names - answers.keys())[:5]),
        fix="see the kernel's log (dmesg): most likely memory ran out",
    )


def _failed(answer: dict[str, Any]) -> HostError | RuntimeFailure:
    if "No space left" in answer["error"]:
        return HostError("the disk is full", where=answer["node"], fix="free space, or set EMU_NODE_DIR")
    return RuntimeFailure(f"it cannot be made ({answer['error']})", where=answer["node"], fix="see `emu doctor`")
