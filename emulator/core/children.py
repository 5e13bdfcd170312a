"""Children of the calling process that live in nodes: waited for, signalled, and reaped when a node goes."""

from __future__ import annotations

import os
import select
import subprocess
import threading


class NodeProcess:
    """A child of the calling process that lives in a node; the subset of `subprocess.Popen` that one needs.

    `pid` is in the caller's numbering. `wait` and `poll` give the exit status, negative for a signal.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()
        _children[pid] = self

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
                    _children.pop(pid, None)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired after `timeout` real seconds."""
        if self.poll() is None and not self._await_end(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        ended = self.poll()
        assert ended is not None, "it has been seen to end"
        return ended

    def _await_end(self, timeout: float | None) -> bool:
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:  # another thread has just taken its status
            return True
        try:
            watch = select.poll()
            watch.register(handle, select.POLLIN)
            return bool(watch.poll(None if timeout is None else max(timeout, 0) * 1000))
        finally:
            os.close(handle)

    def send_signal(self, sig: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


#: this process's children in nodes whose exit status nobody has asked for yet
_children: dict[int, NodeProcess] = {}


def reap_ended() -> None:
    """Take the exit status of all children in nodes that have ended, each into its `NodeProcess`.

    The kernel keeps a node's pid 1 from ending for good as long as a child of ours in there is a zombie.
    """
    for process in list(_children.values()):
        process.poll()


def forget_children() -> None:
    """In a fork: the parent's children are not this process's."""
    _children.clear()
