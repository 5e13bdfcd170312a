"""An MPI program over nodes of a lab: mpirun on the first one, its daemons on the others.

mpirun starts a daemon on each other node by an agent, usually ssh. Ours only prints what it was told, as a line of
mpirun's output; whoever reads that starts the daemon in the node. All that MPI sends, its daemons' talk included, goes
over the nodes' own interfaces, for they have no others.
"""

from __future__ import annotations

import os
import selectors
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.core.errors import BenchmarkError
from emulator.runtimes.base import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from emulator.lab import Lab
    from emulator.runtimes.base import Process

FOLDER = "/tmp/emu-mpi"
_AGENT = f"{FOLDER}/agent"
_MARK = "@emu-start"
#: real seconds between two looks at the output, at most
TICK = 0.5
#: real seconds that mpirun gets to end its processes
GRACE = 5.0
_ROOT = (("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"))


def place(lab: Lab, node: str, files: Mapping[str, bytes]) -> None:
    """Put programs and files into the folder that MPI runs in; raises LabError or RuntimeFailure."""
    for name, data in {"agent": f'#!/bin/sh\necho "{_MARK} $*"\n'.encode(), **files}.items():
        target = f"{FOLDER}/{name}"
        script = f"mkdir -p {FOLDER} && cat > {target} && chmod 755 {target}"

        def feed(stream: BinaryIO, data: bytes = data) -> None:
            stream.write(data)

        status, _, error = lab.node(node).stream(Command(("sh", "-c", script)), feed)
        if status:
            last = (error.decode(errors="replace").strip() or "no output").splitlines()[-1]
            raise BenchmarkError(f"{name} cannot be put into it ({last})", where=node, fix="see `emu status`")


def arguments(lab: Lab, nodes: Sequence[str], program: str) -> list[str]:
    """mpirun's command line: one process on each node, over TCP on the nodes' own subnets only."""
    networks = sorted(
        {
            str(port.address.network)
            for name in nodes
            for port in lab.node(name).plan.interfaces
            if port.address is not None
        }
    )
    settings = {
        "plm": "rsh",
        "plm_rsh_agent": _AGENT,
        "plm_rsh_no_tree_spawn": "1",
        "btl": "tcp,self",
        **({"btl_tcp_if_include": ",".join(networks), "oob_tcp_if_include": ",".join(networks)} if networks else {}),
    }
    mca = [word for key, value in settings.items() for word in ("--mca", key, value)]
    hosts = ",".join(nodes)
    return [
        "mpirun", "--bind-to", "none", "--host", hosts, "-np", str(len(nodes)), "--wdir", FOLDER, *mca,
        f"{FOLDER}/{program}",
    ]  # fmt: skip


@dataclass
class Job:
    """A running program over MPI. `wait` to its end; `stop` whatever happens."""

    lab: Lab
    nodes: Sequence[str]
    output: list[str] = field(default_factory=list)
    _started: list[Process] = field(default_factory=list)

    def run(self, program: str, limit: float, tick: Callable[[], None]) -> int:
        """Run it to its end and return mpirun's status; `tick` is called now and then.

        Raises BenchmarkError after `limit` real seconds.
        """
        read, write = os.pipe()
        try:
            self._start(self.nodes[0], Command(tuple(arguments(self.lab, self.nodes, program)), _ROOT), write)
            with open(read, "rb", buffering=0, closefd=False) as stream:
                return self._follow(stream, write, limit, tick)
        finally:
            self._stop()
            os.close(read)
            os.close(write)

    def _start(self, node: str, command: Command, output: int) -> None:
        from dataclasses import replace

        self._started.append(self.lab.node(node).start(replace(command, stdout=output, stderr=output)))

    def _follow(self, stream: BinaryIO, output: int, limit: float, tick: Callable[[], None]) -> int:
        clock = RealClock()
        start, rest, mpirun = clock.now(), b"", self._started[0]
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                # Asked first: all that it had printed by then is in the pipe.
                status = mpirun.poll()
                while selector.select(0 if status is not None else TICK):
                    *lines, rest = (rest + stream.read(65536)).split(b"\n")
                    for line in lines:
                        self._line(line.decode(errors="replace").rstrip("\r"), output)
                    tick()
                if status is not None:
                    self.output.append(rest.decode(errors="replace"))
                    return status
                tick()
                if clock.now() - start > limit:
                    raise BenchmarkError(
                        f"HPL is not done after {limit:.0f} real seconds",
                        where=", ".join(self.nodes),
                        fix="see whether a link is down or a node stands still (`emu status`, `emu link health`)",
                    )

    def _line(self, line: str, output: int) -> None:
        if not line.startswith(_MARK):
            self.output.append(line)
            return
        # What an ssh would be told: the node, and a line for its shell.
        _, node, daemon = line.split(maxsplit=2)
        self._start(node, Command(("sh", "-c", "exec " + daemon.replace("--daemonize", "", 1)), _ROOT), output)

    def _stop(self) -> None:
        """End what still runs: mpirun politely, so that it ends its processes on every node."""
        clock = RealClock()
        for sig, patience in ((15, GRACE), (9, GRACE)):
            running = [process for process in self._started if process.poll() is None]
            for process in running:
                process.send_signal(sig)
            end = clock.now() + patience
            while any(process.poll() is None for process in running) and clock.now() < end:
                clock.sleep(0.02)
