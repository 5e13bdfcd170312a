"""A terminal of its own for a program in a node, copied from and to the caller's.

The caller's terminal itself must not go in: a program can push input into its controlling terminal (TIOCSTI), and
taking it away from the caller's session would leave the caller's shell without one.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import termios
import tty
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock

if TYPE_CHECKING:
    from emulator.core.enter import NodeProcess

_CHUNK = 65536
#: real seconds between looks at the window's size
_RESIZE = 0.25


def is_own(fd: int | None) -> bool:
    """Whether a descriptor is the calling process's controlling terminal."""
    if fd is None:
        return False
    try:
        os.tcgetpgrp(fd)
    except OSError:
        return False
    return True


def copy_size(source: int, target: int) -> None:
    """Give a terminal the window size of another."""
    fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8)))


class TerminalProcess:
    """A program on a pseudo-terminal; `wait` is what copies between it and the caller's streams."""

    def __init__(self, process: NodeProcess, master: int, stdin: int, stdout: int) -> None:
        self.pid = process.pid
        self._process = process
        self._master = master
        self._stdin = stdin
        self._stdout = stdout

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def send_signal(self, sig: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        self._process.send_signal(sig)

    def wait(self, timeout: float | None = None) -> int:
        """Copy in both directions until it ends; raises subprocess.TimeoutExpired after `timeout` real seconds."""
        if self._process.returncode is not None:
            return self._process.returncode
        kept = termios.tcgetattr(self._stdin)
        tty.setraw(self._stdin)
        try:
            self._copy(timeout)
        finally:
            termios.tcsetattr(self._stdin, termios.TCSADRAIN, kept)
        status = self._process.wait()
        os.close(self._master)
        return status

    def _copy(self, timeout: float | None) -> None:
        clock = RealClock()
        deadline = None if timeout is None else clock.now() + timeout
        sources = [self._stdin, self._master]
        while True:
            copy_size(self._stdin, self._master)
            ready, _, _ = select.select(sources, [], [], _RESIZE)
            if self._master in ready and not self._output():
                return
            if self._stdin in ready and not self._input():
                sources.remove(self._stdin)
            if not ready and self._process.poll() is not None:
                return
            if deadline is not None and clock.now() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)

    def _output(self) -> bool:
        try:
            text = os.read(self._master, _CHUNK)
        except OSError:  # EIO: nobody holds the other end any more
            return False
        while text:
            text = text[os.write(self._stdout, text) :]
        return True

    def _input(self) -> bool:
        text = os.read(self._stdin, _CHUNK)
        while text:
            text = text[os.write(self._master, text) :]
            if not text:
                return True
        return False
