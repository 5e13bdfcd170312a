"""`DockerRuntime`: machines are containers, switches and routers are the embedded runtime's bare namespaces.

A container gets no network of the engine's; its pid 1 names the namespace into which a link driver plugs cables.
Where the engine manages cgroups by their files, a node's container lies in `emu/<lab>/<node>`, made and capped by us
as for an embedded node: so the figures outlive the container, and its processes are found even without the engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core.clock import RealClock
from emulator.core.errors import EmuError, HostError, LabError, RuntimeFailure
from emulator.core.processor import host_arch
from emulator.core.units import Size
from emulator.runtimes import awake, binfmt, caps, cgroups, identity, state, storage
from emulator.runtimes.base import NodeHandle, Usage
from emulator.runtimes.cgroups import NodeGroups
from emulator.runtimes.docker import container, controller, ended, engine, gate, image, leftover, machine, place, settle
from emulator.runtimes.docker.parallel import in_parallel
from emulator.runtimes.docker.remove import remove_containers
from emulator.runtimes.embedded import EmbeddedRuntime, rootfs, view
from emulator.runtimes.namespaces import NamespacedNodes, gone, lives
from emulator.runtimes.state import NodeState

if TYPE_CHECKING:
    from docker.api.client import APIClient

    from emulator.core.enter import EnterToken
    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan, Plan
    from emulator.core.problem import Problem
    from emulator.runtimes.base import Journal

#: seconds in which an engine that is busy sees a container's end
_NOTICES = 5.0
#: the Python of a container that runs roles
INTERPRETER = "python3"


class DockerRuntime(NamespacedNodes):
    """Implements `emulator.runtimes.base.LabRuntime` by an engine's API. All state lies with the lab."""

    name = "docker"

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Usage] = {}  # by container

    def probe(self) -> list[Problem]:
        """See `Runtime.probe`."""
        below = EmbeddedRuntime().probe()  # routers, switches and cgroups are ours
        found = engine.problem() or controller.problem()
        return [found] if found else below

    def create(self, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], journal: Journal) -> Mapping[str, NodeHandle]:
        """See `Runtime.create`. Raises LabError when the lab is there already, HostError and RuntimeFailure."""
        client = engine.client()
        if state.read(lab) or container.of_lab(lab):
            raise LabError(
                f"nodes of a lab named {lab.name!r} are there already", fix=f"remove them with `emu down {lab.name}`"
            )
        _require_processors(nodes)
        for root in self._hierarchies.roots:
            journal("cgroup", str(root / lab.cgroup))
        machines = [node for node in nodes if node.kind == "host"]
        leftover.expect(lab)
        for node in machines:
            journal("container", container.name_of(lab, node.name))
        try:
            return self._create(client, lab, plan, nodes, machines, journal)
        except BaseException:
            self.remove(lab)
            raise

    def _create(
        self, client: APIClient, lab: LabId, plan: Plan, nodes: Sequence[NodePlan], machines: list[NodePlan],
        journal: Journal,
    ) -> dict[str, NodeHandle]:  # fmt: skip
        by_files, on = place.by_files(client), storage.disk(self._hierarchies, place.files(client))
        images: dict[tuple[str, str], dict[str, Any]] = {}
        for node in machines:
            if (key := _image(node)) not in images:
                images[key] = image.find(client, *key, node.name)
        between = [node for node in nodes if node.kind != "host"]
        if between:
            EmbeddedRuntime().create(lab, plan, between, journal)
        known = state.read(lab)
        cgroups.prepare(self._hierarchies, lab)
        caps.weigh_lab(self._hierarchies, lab, sum(float(node.host_cpus) for node in machines))
        hosts, binds = rootfs.hosts_file(plan.hosts), _binds()
        allowed = identity.affinities(machines, sorted(os.sched_getaffinity(0)))
        told = machine.write(lab, machines)

        def make(node: NodePlan) -> NodeState:
            shown = {**binds, **told[node.name]}
            card = storage.of_node(self._hierarchies, node, on, plan.time_scale)
            made = self._make(client, lab, plan, node, images[_image(node)], hosts, shown, by_files, card)
            made = replace(made, storage=storage.note(node, on), processors=allowed.get(node.name, ()))
            machine.hold_to(self._hierarchies, made)
            return made

        made = dict(zip([node.name for node in machines], in_parallel(make, machines), strict=True))
        state.write(lab, known | made)
        awake.launch(lab, self._hierarchies)
        return {
            name: NodeHandle(name, made.netns, made.pid or None)
            for name, made in ((node.name, (known | made)[node.name]) for node in nodes)
        }

    def _make(
        self, client: APIClient, lab: LabId, plan: Plan, node: NodePlan, found: Mapping[str, Any], hosts: str,
        binds: Mapping[str, str], by_files: bool, card: Sequence[tuple[str, str, str]],
    ) -> NodeState:  # fmt: skip
        given = [pair for pair in view.environment(lab, plan, node) if pair[0] != "PATH" or pair in node.env]
        if node.arch == "arm64" != host_arch() and node.cpu_model and "QEMU_CPU" not in dict(node.env):
            given.append(("QEMU_CPU", node.cpu_model))
        if by_files:
            caps.apply(self._hierarchies, lab, node, card)
        parent = f"/{lab.node_cgroup(node.name)}" if by_files else None
        with engine.told(node.name), image.kept(node):
            made = container.create(client, lab, node, found, given, binds, parent)
        with engine.told(node.name):
            client.start(made)
            pid = int(client.inspect_container(made)["State"]["Pid"])
        netns = f"/proc/{pid}/ns/net"
        state_of = NodeState(
            netns,
            pid=pid,
            memory=int(node.memory),
            threads=node.threads,
            cwd=found["Config"]["WorkingDir"] or "/",
            environment=container.environment(found, given),
            has_command=bool(node.command),
            container=made,
        )
        try:
            inode = Path(netns).stat().st_ino
            if not place.is_here(pid, made):
                raise FileNotFoundError(netns)
            own = NodeGroups.of_process(self._hierarchies, pid)
            Path(f"/proc/{pid}/root/etc/hosts").write_text(hosts)
        except (OSError, RuntimeFailure):
            raise self._missed(client, node.name, state_of) from None
        running = replace(state_of, inode=inode)
        try:
            caps.set_all(own, node, card)  # the engine knows no burst, and its own group would throttle before ours
        except RuntimeFailure:
            if lives(running):
                raise
            raise self._missed(client, node.name, state_of) from None  # it has ended, and its groups with it
        return running

    def _missed(self, client: APIClient, node: str, found: NodeState) -> EmuError:
        """The error for a container whose first process is not among this host's, or not any more."""
        clock = RealClock()
        deadline = clock.now() + _NOTICES
        while clock.now() < deadline:
            with engine.told(node):
                now = client.inspect_container(found.container)["State"]
            if not now["Running"] or now["Pid"] != found.pid or place.is_here(found.pid, found.container):
                return ended.reason(client, node, found)
            clock.sleep(0.1)  # the engine may not have seen its end yet
        return place.elsewhere(f"process {found.pid} of this host is not its")

    def start_commands(self, lab: LabId, plan: Plan) -> None:
        """Open every container's gate: its program starts, now that it has its links. Idempotent."""
        known = state.read(lab)
        names = {known[node.name].pid: node.name for node in plan.machines if node.name in known}
        watched = {node.name for node in plan.machines if node.image or node.command}
        watched |= {names[pid] for pid in gate.open_all(self._hierarchies, names)}
        settle.check({name: known[name] for name in names.values() if name in watched})

    def require_living(self, lab: LabId, plan: Plan) -> None:
        """See `CommandStarter.require_living`; a program that failed is told as `start_commands` tells it."""
        known = state.read(lab)
        settle.check({node.name: known[node.name] for node in plan.machines if node.name in known})
        super().require_living(lab, plan)

    def signal_init(self, lab: LabId, node: str, sig: int) -> None:
        """See `NamespacedNodes.signal_init`; also while its program has not started yet."""
        super().signal_init(lab, node, sig)
        gate.signal_behind(self._hierarchies, self.host(lab, node).pid, sig)

    def log(self, lab: LabId, node: str, follow: bool = False) -> Iterator[bytes]:
        """What the container printed; raises RuntimeFailure for an unknown node and for a removed container."""
        made = self.host(lab, node).container
        client = engine.client()
        from docker.errors import NotFound

        with engine.told(node):
            try:
                yield from client.logs(made, stream=True, follow=True) if follow else (client.logs(made),)
            except NotFound:
                raise ended.removed(node, "its output") from None

    def enter(self, lab: LabId, node: str) -> EnterToken:
        """See `Runtime.enter`; where the container has ended, its last words are in the error."""
        found = self.host(lab, node)
        if not lives(found):
            kills = self._usage(lab, node, found).oom_kills
            try:
                why = ended.reason(engine.client(), node, found, kills)
            except EmuError as error:  # the engine is away too
                what = f"the node is gone: its container has ended, and how is not known: {error.what}"
                raise RuntimeFailure(what, where=node, fix=error.fix) from None
            raise RuntimeFailure(f"the node is gone: {why.what}", where=node, fix="see `emu status` and `emu logs`")
        return replace(super().enter(lab, node), interpreter=INTERPRETER)

    def groups(self, lab: LabId, node: str) -> NodeGroups:
        """The cgroups that cap a node: ours, or under systemd the container's own, which go with it."""
        ours = super().groups(lab, node)
        if all(group.exists() for group in ours.all):
            return ours
        return self._joined(lab, self.host(lab, node), node)

    def _joined(self, _lab: LabId, found: NodeState, node: str) -> NodeGroups:
        if not lives(found):
            raise gone(node)
        try:
            return NodeGroups.of_process(self._hierarchies, found.pid)
        except RuntimeFailure:
            raise gone(node) from None

    def _usage(self, lab: LabId, name: str, node: NodeState) -> Usage:
        """As `Runtime.usage` has it; where the figures went with the container, those that this object read last."""
        last = self._last.get(node.container, Usage())
        try:
            read = super()._usage(lab, name, node)
            # Under cgroup version 1 a count of OOM kills goes with the container's own group.
            read = replace(read, oom_kills=max(read.oom_kills, last.oom_kills))
        except RuntimeFailure:
            read = replace(last, running=False, memory=Size(0), pids=0)
        self._last[node.container] = read
        return read

    def remove(self, lab: LabId) -> list[str]:
        """See `Runtime.remove`. What is ours on the host goes even while no engine answers; then HostError says so."""
        removed: list[str] = []
        missing: EmuError | None = None
        try:
            removed += remove_containers(lab)
            leftover.forget(lab)
        except HostError as error:
            missing = leftover.unreachable(lab, error) if leftover.expected(lab) else None
        except EmuError as error:
            missing = error
        removed += EmbeddedRuntime().remove(lab)
        if missing is not None:
            raise missing
        return removed


def _image(node: NodePlan) -> tuple[str, str]:
    """The image that a node runs, and the processor that it is for."""
    return image.of(node), node.arch or host_arch()


def _require_processors(nodes: Sequence[NodePlan]) -> None:
    """Raises HostError where this host does not run a node's programs, or QEMU cannot be its device's core."""
    foreign = [node for node in nodes if node.arch not in ("", host_arch())]
    for arch in sorted({node.arch for node in foreign}):
        of_arch = [node for node in foreign if node.arch == arch]
        binfmt.require(arch, [(node.name, dict(node.env).get("QEMU_CPU", node.cpu_model)) for node in of_arch])


def _binds() -> dict[str, str]:
    """What nodes see read-only under our own paths, and where the engine's host has it: the data cache, and the
    directory that `emu up` was typed in. What is in our own container alone cannot be shown."""
    shown = view.of_host()
    wanted = [view.data_directory()]
    if shown.cwd != view.HOME:
        wanted.append(Path(shown.cwd))
    wanted[0].mkdir(parents=True, exist_ok=True)
    ours = controller.find()
    found = {str(path): path if ours is None else ours.host_path(path) for path in wanted}
    return {target: str(source) for target, source in found.items() if source is not None}
