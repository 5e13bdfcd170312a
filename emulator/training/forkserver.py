"""The warmed process itself: it has imported the framework, and forks roles into nodes when told to.

Started by `zygote.Zygote` as `python -m emulator.training.forkserver FD [options as JSON]`. It must stay fit to be
forked: one thread, no ZeroMQ context, no parallel region. (A child of a parent that ever used two threads hangs in
its first parallel step: the thread pool's state is copied, its threads are not.)

Protocol on FD, a SOCK_SEQPACKET socket, one JSON object a packet. To the server: fork {id, token, job, ...} with the
descriptors [log, records, snapshots], signal {id, signal}, size {}. From it: ready, failed, started {id, pid},
refused {id, ...}, ended {id, code, signal}, size {rss, private}. End of file = die, with all children.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from emulator.core import linux
from emulator.core.enter import EnterToken, NodeProcess, fork_into
from emulator.core.errors import EmuError, TrainingError
from emulator.core.lab_id import LabId
from emulator.core.marks import join_control_group
from emulator.training.role_process import HOLD, RoleRequest, guarded, run_role
from emulator.training.spec import RoleSpec, Workload

PACKET = 1 << 20


class ForkServer:
    """Forks on request, reaps and reports."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, tuple[str, NodeProcess, int]] = {}  # pidfd -> id, process, pidfd
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Until the controller is gone."""
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif not self._obey():
                    self._kill_all()
                    return

    def _obey(self) -> bool:
        packet, fds, _, _ = socket.recv_fds(self._control, PACKET, 8)
        if not packet:
            return False
        request = json.loads(packet)
        try:
            if request["do"] == "fork":
                self._fork(request, fds)
            elif request["do"] == "signal":
                self._signal(request["id"], request["signal"])
            else:
                self._tell("size", **memory())
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _fork(self, request: dict[str, Any], fds: list[int]) -> None:
        token = EnterToken.from_json(request["token"])
        parent = os.getpid()
        try:
            child = fork_into(token, lambda: _child(request, fds, parent), keep=fds)
        except (EmuError, OSError) as error:
            what = error.what if isinstance(error, EmuError) else f"the node cannot be entered ({error})"
            fix = error.fix if isinstance(error, EmuError) else "see `emu status`"
            self._tell("refused", id=request["id"], what=what, fix=fix)
            return
        pidfd = os.pidfd_open(child.pid)
        self._children[pidfd] = (request["id"], child, pidfd)
        self._poll.register(pidfd, select.POLLIN)
        self._tell("started", id=request["id"], pid=child.pid)

    def _reap(self, pidfd: int) -> None:
        name, child, _ = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        status = child.wait()
        self._tell("ended", id=name, code=max(status, 0), signal=max(-status, 0))

    def _signal(self, name: str, number: int) -> None:
        for held, _, pidfd in self._children.values():
            if held == name:
                signal.pidfd_send_signal(pidfd, number)

    def _kill_all(self) -> None:
        for _, child, pidfd in self._children.values():
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            child.wait()

    def _tell(self, event: str, **fields: Any) -> None:
        tell(self._control, event, **fields)


def tell(control: socket.socket, event: str, **fields: Any) -> None:
    """Report to the controller; if it is gone, the end of file on the socket says so soon."""
    try:
        control.send(json.dumps({"event": event} | fields).encode())
    except (BrokenPipeError, ConnectionResetError):
        return


def _child(request: dict[str, Any], fds: list[int], parent: int) -> int:
    """In the forked child, in its node."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (0, parent):  # 0: the parent is outside the PID namespace
        return 1
    linux.set_name(f"emu {request['id']}")
    log, records, snapshots = fds
    os.dup2(log, 1)
    os.dup2(log, 2)
    if request["job"] == "role" and (interpreter := json.loads(request["token"])["interpreter"]):
        _exec(interpreter, request, records, snapshots)
    if request["job"] == "role":
        spec = RoleSpec.from_json(json.dumps(request["spec"]))
        return run_role(RoleRequest(spec, request["origin"], records, snapshots))
    from emulator.training import evaluator

    given = (Workload(**request["workload"]), request["data_directory"], snapshots, records)
    if request["job"] == "accompany":
        return guarded(lambda: evaluator.accompany(*given, request["beside"]))
    return guarded(lambda: evaluator.drain(*given))


def _exec(interpreter: str, request: dict[str, Any], records: int, snapshots: int) -> NoReturn:
    """Become the node's own Python, whose files are not ours, and run the role there once all are told to."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [HOLD])
    told = {"spec": request["spec"], "origin": request["origin"], "records": records, "snapshots": snapshots}
    descriptor = os.memfd_create("role")
    os.write(descriptor, json.dumps(told | {"held": True}).encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    for inherited in (descriptor, records, snapshots):
        os.set_inheritable(inherited, True)
    os.execvp(interpreter, [interpreter, "-m", "emulator.training", str(descriptor)])


def memory() -> dict[str, int]:
    """Bytes of this process: all that is resident, and what a fresh child of it has alone."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(_rollup("Private_Clean", "Private_Dirty")).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        private = int(pipe.read())
    os.waitpid(child, 0)
    return {"rss": _rollup("Rss"), "private": private}


def _rollup(*names: str) -> int:
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return sum(1024 * int(fields[name].split()[0]) for name in names)


def warm(workload: Workload) -> None:
    """Import all that a role needs, and make sure that the process may still be forked."""
    from emulator.training import evaluator, lab_context, preload  # noqa: F401

    preload(workload)
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise TrainingError(
            f"the warmed process has {threads} threads, so its children would hang",
            where=workload.model,
            fix="start no threads and compute nothing while the model's module is imported",
        )
    # What lives now is shared with every child; a collection that visits it would copy its pages into each of them.
    gc.collect()
    gc.freeze()


def main(arguments: list[str]) -> None:
    """Serve on the inherited socket until its other end is closed."""
    control = socket.socket(fileno=int(arguments[0]))
    control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET)
    options = json.loads(arguments[1])
    if options["parent"]:
        linux.die_with_parent(options["parent"])
    try:
        if options["lab"]:
            name, root = options["lab"]
            join_control_group(LabId(name, Path(root)))
        warm(Workload(**options["workload"]))
    except EmuError as error:
        tell(control, "failed", kind=type(error).__name__, what=error.what, where=error.where, fix=error.fix)
        return
    tell(control, "ready")
    ForkServer(control).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
