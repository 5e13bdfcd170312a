"""Nodes that are namespaces and cgroups of this host, whoever made them: entering, starting programs, usage."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from emulator.core.enter import EnterToken
from emulator.core.errors import RuntimeFailure
from emulator.core.state_file import replace_state
from emulator.core.units import Size
from emulator.runtimes import caps, cgroups, state
from emulator.runtimes.base import Usage
from emulator.runtimes.cgroups import NodeGroups
from emulator.runtimes.start import start

if TYPE_CHECKING:
    from emulator.core.enter import NodeProcess
    from emulator.core.lab_id import LabId
    from emulator.core.plan import Plan
    from emulator.runtimes.base import Command
    from emulator.runtimes.state import NodeState
    from emulator.runtimes.terminal import TerminalProcess

_KINDS = ("net", "pid", "mnt", "uts", "ipc")
#: what pid 1 and a small program need
_LEAST_MEMORY = 16 << 20
#: Docker's default set (moby, oci/caps/defaults.go)
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
)  # fmt: skip


class NamespacedNodes:
    """What `Runtime` asks for once the nodes are there. All state lies with the lab (`emulator.runtimes.state`)."""

    def __init__(self) -> None:
        self._found: cgroups.Hierarchies | None = None

    @property
    def _hierarchies(self) -> cgroups.Hierarchies:
        if self._found is None:
            self._found = cgroups.detect()
        return self._found

    def signal_init(self, lab: LabId, node: str, sig: int) -> None:
        """Signal a node's pid 1 (SIGTERM ends the node, SIGKILL at once); raises RuntimeFailure when it is gone."""
        found = self.host(lab, node)
        try:
            handle = os.pidfd_open(found.pid)
        except ProcessLookupError:
            raise gone(node) from None
        try:
            if not lives(found):
                raise gone(node)
            signal.pidfd_send_signal(handle, sig)
        finally:
            os.close(handle)

    def start(self, lab: LabId, node: str, command: Command) -> NodeProcess | TerminalProcess:
        """See `Runtime.start`."""
        return start(self.enter(lab, node), command)

    def enter(self, lab: LabId, node: str) -> EnterToken:
        """See `Runtime.enter`; raises RuntimeFailure for a node that is unknown, runs no programs, or has ended."""
        found = self.host(lab, node)
        if not lives(found):
            raise gone(node)
        return EnterToken(
            node=node,
            namespaces=tuple((kind, f"/proc/{found.pid}/ns/{kind}") for kind in _KINDS),
            inodes=(found.inode,),
            cgroups=tuple(str(group / "cgroup.procs") for group in self._joined(lab, found, node).all),
            environment=found.environment,
            capabilities=CAPABILITIES,
            threads=found.threads,
            cwd=found.cwd,
            processors=found.processors,
        )

    def require_living(self, lab: LabId, plan: Plan) -> None:
        """See `CommandStarter.require_living`."""
        for node in plan.machines:
            self.enter(lab, node.name)

    def usage(self, lab: LabId, nodes: Iterable[str]) -> Mapping[str, Usage]:
        """See `Runtime.usage`. Raises RuntimeFailure for an unknown node; switches have no usage and are left out."""
        known = state.read(lab)
        found = {}
        for name in nodes:
            node = known.get(name)
            if node is None:
                raise unknown(lab, name)
            if node.pid:
                found[name] = self._usage(lab, name, node)
        return found

    def _usage(self, lab: LabId, name: str, node: NodeState) -> Usage:
        try:
            return caps.usage(self.groups(lab, name), running=lives(node), shared=state.shared(lab, name))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
            raise gone(name) from None

    def charge_shared(self, lab: LabId, node: str, size: Size) -> None:
        """Count `size` bytes of shared pages, charged elsewhere, as the node's own (absolute, not added up).

        The pages of a warmed process that a node's processes share are charged to whoever touched them first, so
        the node's cap is lowered by them, and `usage` adds them back to `memory`, `memory_peak` and `shared`. A
        node without a memory cap only has them added. Raises RuntimeFailure when the cap is too small for them.
        """
        found = self.host(lab, node)
        left = found.memory - int(size)
        if found.memory and left < _LEAST_MEMORY:
            raise RuntimeFailure(
                f"its memory of {Size(found.memory)} is too little beside the {size} that the framework shares",
                where=node,
                fix="give the node more memory, or use a device with more",
            )
        if found.memory:
            caps.set_memory(self.groups(lab, node), node, left)
        replace_state(lab.node_directory(node) / "shared", str(int(size)))

    def groups(self, lab: LabId, node: str) -> NodeGroups:
        """The cgroups that cap a node and count what it uses."""
        return NodeGroups.of(self._hierarchies, lab, node)

    def _joined(self, lab: LabId, _found: NodeState, node: str) -> NodeGroups:
        """The cgroups that a process which enters the node joins."""
        return self.groups(lab, node)

    def host(self, lab: LabId, name: str) -> NodeState:
        """What is remembered of a machine; raises RuntimeFailure for a node that is unknown or runs no programs."""
        node = state.read(lab).get(name)
        if node is None:
            raise unknown(lab, name)
        if not node.pid:
            raise RuntimeFailure(
                "a switch or router runs no programs", where=name, fix="name a node that is a machine (`emu status`)"
            )
        return node


def unknown(lab: LabId, name: str) -> RuntimeFailure:
    """The error for a name that no node has."""
    return RuntimeFailure(
        f"lab {lab.name!r} has no node of that name", where=name, fix="see `emu status` for its nodes"
    )


def gone(name: str) -> RuntimeFailure:
    """The error for a node whose pid 1 has ended."""
    return RuntimeFailure("the node is gone (its pid 1 has ended)", where=name, fix="see `emu status` and `emu logs`")


def lives(node: NodeState) -> bool:
    """Whether its pid 1 still runs: neither its pid nor its namespace is another's by now."""
    try:
        return os.stat(f"/proc/{node.pid}/ns/net").st_ino == node.inode  # noqa: PTH116
    except (FileNotFoundError, ProcessLookupError):
        return False
