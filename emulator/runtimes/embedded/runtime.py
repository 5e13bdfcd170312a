"""`EmbeddedRuntime`: nodes out of Linux namespaces, an overlay over the host's root, and cgroups."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.errors import HostError, LabError, RuntimeFailure
from emulator.core.processor import host_arch
from emulator.core.state_file import replace_state
from emulator.runtimes import awake, caps, cgroups, identity, state, storage
from emulator.runtimes.base import NodeHandle, log_path, read_log
from emulator.runtimes.cgroups import NodeGroups
from emulator.runtimes.embedded import rootfs, view
from emulator.runtimes.embedded.gauges import Source
from emulator.runtimes.embedded.keeper import Job, launch
from emulator.runtimes.embedded.probe import problems
from emulator.runtimes.embedded.remove import remove
from emulator.runtimes.namespaces import NamespacedNodes
from emulator.runtimes.state import NodeState

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.core.problem import Problem
    from emulator.runtimes.base import Journal


class EmbeddedRuntime(NamespacedNodes):
    """Implements `emulator.runtimes.base.Runtime`. It holds no state of its own: all of it lies with the lab."""

    name = "embedded"

    def probe(self) -> list[Problem]:
        """See `Runtime.probe`."""
        return problems()

    def create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], journal: Journal) -> Mapping[str, NodeHandle]:
        """See `Runtime.create`. Raises LabError when the lab is there already, HostError and RuntimeFailure."""
        _refuse_containers(nodes)
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
        hosts = [node for node in nodes if node.kind == "host"]
        on = storage.disk(self._hierarchies, layers.disk)
        cards = {node.name: storage.of_node(self._hierarchies, node, on, plan.time_scale) for node in hosts}
        layers = replace(layers, durable=any(cards.values()))
        allowed = identity.affinities(hosts, sorted(os.sched_getaffinity(0)))
        made = {}
        for node in nodes:
            of = self._state(lab, plan, node, shown.cwd)
            made[node.name] = replace(of, storage=storage.note(node, on), processors=allowed.get(node.name, ()))
        cpuinfo = Path(identity.CPUINFO).read_text()
        jobs = [self._job(lab, node, made[node.name], cpuinfo) for node in nodes]
        results, tell = os.pipe()
        wait, go = os.pipe()
        try:
            launch(lab, layers, jobs, tell, wait)
            os.close(tell)
            os.close(wait)
            tell = wait = -1
            caps.weigh_lab(self._hierarchies, lab, sum(float(node.host_cpus) for node in hosts))
            for node in hosts:
                caps.apply(self._hierarchies, lab, node, cards[node.name])
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
        if hosts:
            awake.launch(lab, self._hierarchies)
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

    def _job(self, lab: LabId, node: NodePlan, made: NodeState, cpuinfo: str) -> Job:
        if node.kind != "host":
            return Job(node.name, is_host=False)
        log = log_path(lab, node.name)
        if node.command:
            log.parent.mkdir(parents=True, exist_ok=True)
        machine = identity.machine(node, cpuinfo) if node.memory else None
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
            machine=machine,
            source=self._source(lab, node) if machine else None,
            processors=made.processors,
        )

    def _source(self, lab: LabId, node: NodePlan) -> Source:
        files = NodeGroups.of(self._hierarchies, lab, node.name).file
        is_v2 = self._hierarchies.is_v2("memory")
        return Source(
            usage=str(files("memory", "memory.current" if is_v2 else "memory.usage_in_bytes")),
            cap=str(files("memory", "memory.max" if is_v2 else "memory.limit_in_bytes")),
            details=str(files("memory", "memory.stat")),
            processor_time=str(files("cpuacct", self._hierarchies.cpu_time)),
            memory=int(node.memory),
            processors=identity.processors(node),
            speed=float(node.cpus) / node.quota,
        )

    def start_commands(self, lab: LabId, plan: Plan) -> None:
        """Start the nodes' own commands (of those in `plan`); their output goes to `log_path`. Idempotent."""
        for node in plan.nodes:
            if node.command:
                self.signal_init(lab, node.name, signal.SIGUSR1)

    def log(self, lab: LabId, node: str, follow: bool = False) -> Iterator[bytes]:
        """See `CommandStarter.log`."""
        self.host(lab, node)
        return read_log(log_path(lab, node), follow)

    def remove(self, lab: LabId) -> list[str]:
        """See `Runtime.remove`."""
        return remove(lab)


def _refuse_containers(nodes: Sequence[NodePlan]) -> None:
    """An embedded node has the host's files and processor, and must not pass for another."""
    asked = [node for node in nodes if node.image or node.arch not in ("", host_arch())]
    if asked:
        what = f"image {asked[0].image!r}" if asked[0].image else f"programs for {asked[0].arch}"
        raise RuntimeFailure(
            f"it is to run {what}, and the embedded runtime has this host's programs only",
            where=asked[0].name,
            fix="use --runtime docker, or take `image` and `arch` out",
        )


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
