"""Pid 1 of a node: reaps, ends the node when told to, and runs the node's own command.

It is forked, never exec'ed, so all it needs is imported before. SIGTERM ends the node; SIGUSR1 starts the
command (`EmbeddedRuntime.start_commands`), restarted as the topology file says.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from emulator.core.clock import RealClock
from emulator.core.enter import reset_signals
from emulator.runtimes.start import become

#: a log grows to twice this, then its older half is cut off
LOG_KEPT = 4 << 20
_GRACE, _LONGEST_PAUSE, _CHUNK = 2.0, 10.0, 65536


@dataclass(frozen=True)
class Service:
    """The node's own command: `log` is a descriptor open for reading and appending.

    `memory` is one of the cgroup.procs that caps its memory, where pid 1 itself stays outside (-1: it does not).
    """

    argv: tuple[str, ...]
    restart: str
    environment: tuple[tuple[str, str], ...]
    cwd: str
    log: int
    memory: int = -1


def serve(service: Service | None, ready: Callable[[], None]) -> NoReturn:
    """Be pid 1 until told to end; `ready` is called when signals are heeded. Never returns."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda _number, _frame: None)
    ready()
    Init(service, read).run()


class Init:
    """The loop of pid 1."""

    def __init__(self, service: Service | None, wakeup: int) -> None:
        self._service = service
        self._wakeup = wakeup
        self._clock = RealClock()
        self._pipe = -1
        self._child = 0
        self._wanted = False
        self._start_at: float | None = None
        self._started = 0.0
        self._failures = 0

    def run(self) -> NoReturn:
        """Wait for signals and output, for ever."""
        while True:
            waiting = [fd for fd in (self._wakeup, self._pipe) if fd >= 0]
            pause = None if self._start_at is None else max(self._start_at - self._clock.now(), 0)
            ready, _, _ = select.select(waiting, [], [], pause)
            if self._pipe in ready:
                self._copy_output()
            if self._wakeup in ready:
                self._heed(os.read(self._wakeup, 4096))
            if self._start_at is not None and self._clock.now() >= self._start_at:
                self._start()

    def _heed(self, signals: bytes) -> None:
        if signal.SIGTERM in signals or signal.SIGINT in signals:
            self._end()
        if signal.SIGUSR1 in signals and self._service is not None and not self._wanted:
            self._wanted, self._start_at = True, self._clock.now()
        for pid, code in self._reap():
            if pid == self._child:
                self._ended(code)

    def _reap(self) -> list[tuple[int, int]]:
        """Pid and exit code of every child that has ended since the last time."""
        found = []
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                found.append((ended[0], os.waitstatus_to_exitcode(ended[1])))
        except ChildProcessError:
            pass  # no child is left, ended or not
        return found

    def _end(self) -> None:
        """Ask everything in the node to end, then take the node down with this process."""
        deadline = self._clock.now() + _GRACE
        try:
            os.kill(-1, signal.SIGTERM)
            while self._clock.now() < deadline:
                self._reap()
                os.kill(-1, 0)
                self._clock.sleep(0.01)
        except ProcessLookupError:
            pass  # nothing is left to wait for
        os._exit(0)

    def _start(self) -> None:
        service = self._service
        assert service is not None, "only a node with a command has a time to start it"
        self._start_at, self._started = None, self._clock.now()
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe, write = os.pipe2(os.O_CLOEXEC)
        self._child = os.fork()
        if self._child == 0:
            _run(service, write)
        os.close(write)

    def _ended(self, code: int) -> None:
        service = self._service
        assert service is not None, "only a node with a command has a child of its own"
        self._child = 0
        quick = self._clock.now() - self._started < _LONGEST_PAUSE
        self._failures = self._failures + 1 if quick else 0
        how = f"exit status {code}" if code >= 0 else f"signal {-code}"
        again = service.restart == "always" or (service.restart == "on-failure" and code != 0)
        self._copy_output()
        self._log(f"emu: {service.argv[0]} ended with {how}{', starting it again' if again else ''}\n".encode())
        if again:
            self._start_at = self._clock.now() + min(0.1 * 2 ** min(self._failures, 10), _LONGEST_PAUSE)

    def _copy_output(self) -> None:
        """Move what the command wrote into the log; a chunk at a time, so that signals are heeded in between."""
        while self._pipe >= 0 and select.select([self._pipe], [], [], 0)[0]:
            chunk = os.read(self._pipe, _CHUNK)
            if not chunk:
                os.close(self._pipe)
                self._pipe = -1
                return
            self._log(chunk)
            if self._child:
                return

    def _log(self, text: bytes) -> None:
        assert self._service is not None, "only a node with a command has a log"
        log = self._service.log
        try:
            size = os.fstat(log).st_size
            if size > 2 * LOG_KEPT:
                kept = os.pread(log, LOG_KEPT, size - LOG_KEPT)
                os.ftruncate(log, 0)
                os.write(log, b"emu: older lines were cut off\n" + kept[kept.find(b"\n") + 1 :])
            os.write(log, text)
        except OSError:
            return  # a full disk must not end the node; the log just lacks these lines


def _run(service: Service, output: int) -> None:
    """In the child: become the command. Never returns."""
    try:
        os.setsid()
        if service.memory >= 0:
            os.write(service.memory, b"0")
        os.dup2(output, 1)
        os.dup2(output, 2)
        reset_signals()
        set_oom_score(0)
        become(service.argv, dict(service.environment), service.cwd)
    except OSError as error:
        os.write(2, f"emu: {service.argv[0]} cannot be started ({error.strerror})\n".encode())
    finally:
        os._exit(127)


def set_oom_score(score: int) -> None:
    """Set how readily the kernel kills the calling process when memory runs out (-1000 never, 1000 first)."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(score).encode())
    finally:
        os.close(fd)
