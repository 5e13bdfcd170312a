"""A node of a running lab, as Python sees it: `lab.node("worker-1").run(["hostname"])`."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

from emulator.core.errors import LabError
from emulator.runtimes.base import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan
    from emulator.runtimes.base import Process, Runtime, Usage


@dataclass(frozen=True)
class Completed:
    """A program that has ended: exit status (128 + n for a signal n) and what it printed, as text."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    def check(self) -> Completed:
        """This, or LabError with the last line of stderr when the exit status is not 0."""
        if self.returncode:
            last = (self.stderr.strip() or "no output").splitlines()[-1]
            raise LabError(f"{self.argv[0]!r} ended with status {self.returncode}", fix=f"it said: {last}")
        return self


class LabNode:
    """Runs programs in one node. Made by `Lab.node`; holds no state of its own."""

    def __init__(self, lab: LabId, plan: NodePlan, runtime: Runtime) -> None:
        self._lab = lab
        self._runtime = runtime
        self.plan = plan
        self.name = plan.name

    @property
    def address(self) -> str:
        """The node's primary IPv4 address."""
        return str(self.plan.address)

    def start(self, command: Command) -> Process:
        """Start a program with the given streams; see `Command`."""
        return self._runtime.start(self._lab, self.name, command)

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: str = "",  # noqa: A002 - the name that subprocess.run has
        timeout: float | None = None,
    ) -> Completed:
        """Run a program to its end, and return what it printed. `timeout` is real seconds.

        Raises RuntimeFailure when it cannot be started and LabError when it takes longer (it is killed then).
        """

        def feed(stream: BinaryIO) -> None:
            stream.write(input.encode())

        status, out, err = self.stream(Command(tuple(argv), tuple((env or {}).items()), cwd), feed, timeout)
        return Completed(tuple(argv), status, out.decode(errors="replace"), err.decode(errors="replace"))

    def stream(
        self, command: Command, feed: Callable[[BinaryIO], None], timeout: float | None = None
    ) -> tuple[int, bytes, bytes]:
        """Run a program whose stdin `feed` writes; exit status (128 + n for a signal n), stdout and stderr."""
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe(), os.pipe()
        try:
            process = self.start(replace(command, stdin=in_read, stdout=out_write, stderr=err_write))
        except BaseException:
            for fd in (in_write, out_read, err_read):
                os.close(fd)
            raise
        finally:
            for fd in (in_read, out_write, err_write):
                os.close(fd)
        out, err = _Drain(out_read), _Drain(err_read)
        feeder = threading.Thread(target=_feed, args=(in_write, feed), daemon=True)
        feeder.start()
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(9)
            process.wait()
            raise LabError(
                f"{command.argv[0]!r} on {self.name} took longer than {timeout:g} s", fix="give it a longer timeout"
            ) from None
        return status if status >= 0 else 128 - status, out.result(), err.result()

    def usage(self) -> Usage:
        """What the node has used so far, in real units."""
        return self._runtime.usage(self._lab, [self.name])[self.name]


class _Drain(threading.Thread):
    """Reads a pipe to its end beside us, so that the program never waits for us."""

    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self._data = b""
        self.start()

    def run(self) -> None:
        with open(self._fd, "rb") as stream:
            self._data = stream.read()

    def result(self) -> bytes:
        """What was read; a child left behind with the pipe open is not waited for."""
        self.join(5)
        return self._data


def _feed(fd: int, feed: Callable[[BinaryIO], None]) -> None:
    try:
        with open(fd, "wb") as stream:
            feed(stream)
    except BrokenPipeError:
        return  # the program ended without reading all; its exit status tells
