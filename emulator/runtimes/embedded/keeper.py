"""The keeper of a lab: a process that makes the nodes, and then holds their network namespaces.

The namespaces of switches and routers, which have no process of their own, live as long as it does, and those of
hosts outlive a node that died, with their interfaces down (see `Vigil`). They are reached as /proc/<keeper>/fd/<n>:
nothing is mounted on the host, so killing the lab's processes removes everything.

The keeper is in the lab's control group before it makes anything, and a child is born in its parent's cgroup: so
whatever is made is marked from its first instant. Forks cost most, so there are as many keepers as processors
help (`KEEPERS`), each with its part of the nodes; a node's own process does the node's mounts meanwhile.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from emulator.core import linux, marks
from emulator.core.enter import close_all_but, cut_ties
from emulator.core.errors import EmuError
from emulator.runtimes.embedded import init, rootfs
from emulator.runtimes.embedded.gauges import Gauge, keep_current
from emulator.runtimes.embedded.init import Service
from emulator.runtimes.embedded.vigil import Vigil
from emulator.runtimes.namespaces import CAPABILITIES

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId
    from emulator.runtimes.embedded.gauges import Source
    from emulator.runtimes.embedded.rootfs import Layers
    from emulator.runtimes.identity import Machine

KEEPERS = 2


_MEMORY_V1 = "/sys/fs/cgroup/memory/"


@dataclass(frozen=True)
class Job:
    """One node to make. `cgroups` are the lab's groups in which its own are found, to be joined at the end.

    `machine` is what it shows of itself, and `source` where the figures of that come from; None = it shows this host.
    `processors` are those of this host that it may use; empty = all.
    """

    name: str
    is_host: bool
    cgroups: tuple[str, ...] = ()
    memory: int = 0
    command: tuple[str, ...] = ()
    restart: str = "no"
    environment: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    log: str = ""
    machine: Machine | None = None
    source: Source | None = None
    processors: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Work:
    """What keepers and nodes inherit: `title` is where their command line lies, the rest are descriptors."""

    layers: Layers
    title: tuple[int, int]
    mounts: int
    results: int
    go: int


def launch(lab: LabId, layers: Layers, jobs: Sequence[Job], results: int, go: int) -> None:
    """Fork the keepers; each writes a JSON line a node to `results`. Nodes join their cgroups when `go` closes."""
    parent = os.getpid()
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        linux.die_with_parent(parent)
        marks.join_control_group(lab)
        _settle({results, go})
        mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        linux.unshare(linux.CLONE_NEWNS)
        rootfs.mount_common(layers, {job.machine for job in jobs if job.machine is not None})
        work = _Work(layers, linux.title_area(), mounts, results, go)
        for part in range(min(KEEPERS, len(jobs))):
            if os.fork() == 0:
                linux.set_title(f"emu-keep {lab.name}", work.title)
                _keep(work, jobs[part::KEEPERS])
        os._exit(0)
    except BaseException as error:
        _fail(results, "", error)


def _settle(keep: set[int]) -> None:
    """Cut the ties to the caller: session, signals, descriptors; be last in line when memory runs out."""
    gc.disable()
    os.umask(0o022)
    cut_ties(keep)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    linux.bound_capabilities(CAPABILITIES)
    try:
        init.set_oom_score(-900)
    except PermissionError:
        return  # a root without CAP_SYS_RESOURCE (some containers): then the OOM killer picks as it likes


def _fail(results: int, node: str, error: BaseException) -> NoReturn:
    """Tell what went wrong in a process without a stderr, a bug of ours with its place, and end."""
    text = str(error) if isinstance(error, (OSError, EmuError)) else traceback.format_exc()[-1500:]
    _tell(results, {"node": node, "error": text})
    os._exit(1)


def _tell(results: int, line: dict[str, object]) -> None:
    # Shorter than PIPE_BUF, so that lines of several writers never mix.
    os.write(results, json.dumps(line).encode()[:4000] + b"\n")


def _keep(work: _Work, jobs: Sequence[Job]) -> NoReturn:
    """Make the nodes of this keeper, then hold on to their namespaces until killed."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the nodes' first processes
        own = {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "pid")}
        gauges, vigil = [], Vigil(own["net"])
        for job in jobs:
            if job.source is not None:
                gauges.append(Gauge(rootfs.gauge_place(work.layers, job.name), job.source))
            _make(work, job, own["pid"], vigil)
        linux.setns(own["net"])
        linux.setns(work.mounts)
        os.read(work.go, 1)  # ends when the nodes' groups are there
        for fd in (own["pid"], work.mounts, work.results, work.go):
            os.close(fd)
        keep_current(gauges, vigil.watch)
        while True:
            vigil.watch()
    except BaseException as error:
        _fail(work.results, "", error)


def _make(work: _Work, job: Job, own_pids: int, vigil: Vigil) -> None:
    linux.unshare(linux.CLONE_NEWNET | (linux.CLONE_NEWPID if job.is_host else 0))
    net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    answer = {"node": job.name, "netns": f"/proc/{os.getpid()}/fd/{net}", "inode": os.fstat(net).st_ino}
    if not job.is_host:
        _tell(work.results, answer)
        return
    pid = os.fork()
    if pid == 0:
        _become_node(work, job, answer)
    vigil.add(pid, net)
    linux.setns(own_pids, linux.CLONE_NEWPID)


def _become_node(work: _Work, job: Job, answer: dict[str, object]) -> NoReturn:
    """In the node's first process: its file system, its cgroups, its privileges; then be pid 1."""
    try:
        answer["pid"] = int(Path("/proc/self").readlink().name)  # still the host's /proc: the pid that it knows
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)
        socket.sethostname(job.name)
        linux.set_title(f"emu-init {job.name}", work.title)
        log = os.open(job.log, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600) if job.command else -1
        close_all_but({0, 1, 2, work.results, work.go, log} - {-1})
        groups = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in job.cgroups]
        rootfs.enter(work.layers, job.name, job.memory, job.machine)
        os.read(work.go, 1)  # ends when the caller closes it: the node's groups are there, with their caps
        memory = -1
        for path, group in zip(job.cgroups, groups, strict=True):
            procs = os.open(f"{job.name}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=group)
            os.close(group)
            if path.startswith(_MEMORY_V1):
                # Pid 1 stays outside the node's memory cap, or the kernel may kill it for what another took; not
                # every root may ask it to take pid 1 last.
                memory = procs
                continue
            os.write(procs, b"0")
            os.close(procs)
        os.close(work.go)
        if job.processors:
            os.sched_setaffinity(0, job.processors)
        os.environ.clear()
        linux.keep_capabilities(CAPABILITIES)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)

        def ready() -> None:
            _tell(work.results, answer)
            os.close(work.results)

        service = None
        if job.command:
            service = Service(job.command, job.restart, job.environment, job.cwd, log, memory)
        init.serve(service, ready)
    except BaseException as error:
        _fail(work.results, job.name, error)
