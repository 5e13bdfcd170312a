"""The recipe by which a process of ours becomes a process of a node.

A runtime gives an `EnterToken` for each node; whoever holds it (the CLI's `exec`, the warmed training process)
calls `fork_into`. Order: open the namespaces and check that they are the node's, fork into the node's PID
namespace, and in the child: join cgroups, setns, drop the bounding set and capabilities, no_new_privs, set the
environment.

A PID namespace applies to children only. Instead of a second fork, the caller's thread enters the node's PID
namespace for the moment of the fork: so the program is the caller's own child, with its exit status, its signals
and its pid in the caller's numbering, and no process in between that could die alone.

Imports only the standard library: the warmed process calls it, and numpy or torch are none of its business.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import NoReturn

from emulator.core import linux
from emulator.core.children import NodeProcess as NodeProcess
from emulator.core.children import forget_children
from emulator.core.errors import RuntimeFailure

#: what a child says on its report pipe before it runs; nothing = it runs
Report = Callable[[str], None]


@dataclass(frozen=True)
class EnterToken:
    """What it takes to enter a node; plain data, so that it travels as JSON.

    `namespaces` pairs a kind (net, pid, mnt, uts, ipc) with a path to setns to, in that order; `inodes` are those
    of the first ones, so that a recycled pid cannot lead into a stranger's namespaces; `cgroups` are the
    cgroup.procs files to write the process id to; `environment` is set in full (nothing is inherited). A token
    without namespaces stands for this host: nothing is entered, dropped or set that it does not name.
    `interpreter` is the node's own Python where its files are not the host's: a fork of ours could import nothing.
    `processors` are those of this host that the node may use; none named = all that the caller has.
    """

    node: str
    namespaces: tuple[tuple[str, str], ...] = ()
    cgroups: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    capabilities: tuple[str, ...] = ()
    threads: int = 1
    cwd: str = "/"
    inodes: tuple[int, ...] = ()
    interpreter: str = ""
    processors: tuple[int, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> EnterToken:
        raw = json.loads(text)
        pairs = ("namespaces", "environment")
        return EnterToken(
            **raw
            | {key: tuple((a, b) for a, b in raw[key]) for key in pairs}
            | {key: tuple(raw[key]) for key in ("cgroups", "capabilities", "inodes", "processors")}
        )


#: the parent's streams, in a forked child
_inherited: list[object] = []


def fork_into(token: EnterToken, run: Callable[[], int | None], *, keep: Iterable[int] = ()) -> NodeProcess:
    """Fork a child that enters the node and ends with what `run` returns there (None = 0).

    All descriptors but 0, 1, 2 and `keep` are closed in the child, signal handlers are the default ones. Returns
    when the child has entered. An exception out of `run` is printed on the child's stderr and ends it with 1.
    Raises RuntimeFailure when the node cannot be entered (it is gone).
    """

    def body(report: Report) -> None:
        report("")
        run_to_exit(run)

    return fork_with_report(token, body, keep=keep)


def run_to_exit(run: Callable[[], int | None]) -> NoReturn:
    """Call `run` and end this process, a fork, with what it returns."""
    status = 1
    # Fresh streams: what the parent had buffered is the parent's to write, and its streams may not be on 1 and 2.
    # They are held on to, since dropping a stream flushes it.
    _inherited.extend((sys.stdout, sys.stderr))
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False, errors="backslashreplace")
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")
    try:
        status = run() or 0
        sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(status & 0xFF)


def fork_with_report(token: EnterToken, body: Callable[[Report], None], *, keep: Iterable[int] = ()) -> NodeProcess:
    """`fork_into` for a `body` that may still fail after entering: what it reports is raised here as the failure.

    A report of "" says that all is well; so does an exec, which closes the pipe. `body` must not return.
    """
    read, write = os.pipe()
    try:
        with _namespaces(token) as descriptors, _pid_namespace(descriptors.get("pid")):
            pid = _fork(token)
            if pid == 0:
                _child(token, descriptors, body, write, {*keep})
        os.close(write)
        write = -1
        with os.fdopen(os.dup(read), "rb") as pipe:
            failure = pipe.read().decode(errors="replace")
    finally:
        for fd in (read, write):
            if fd >= 0:
                os.close(fd)
    if failure:
        os.waitpid(pid, 0)
        what, _, fix = failure.partition("\n")
        raise RuntimeFailure(what, where=token.node, fix=fix or "see `emu status`")
    return NodeProcess(pid)


def _fork(token: EnterToken) -> int:
    try:
        return os.fork()
    except OSError as error:
        gone = token.namespaces and error.errno == errno.ENOMEM  # a PID namespace whose pid 1 has ended
        raise (
            _gone(token)
            if gone
            else RuntimeFailure(
                f"no process can be started ({error.strerror})", where=token.node, fix="free memory and processes"
            )
        ) from None


def _gone(token: EnterToken) -> RuntimeFailure:
    return RuntimeFailure(
        "the node is gone (its pid 1 has ended)", where=token.node, fix="see `emu status`, and `emu logs` for why"
    )


@contextmanager
def _namespaces(token: EnterToken) -> Iterator[dict[str, int]]:
    """Open the node's namespaces, and check that they are the ones that the token was made for."""
    descriptors: dict[str, int] = {}
    try:
        for index, (kind, path) in enumerate(token.namespaces):
            descriptors[kind] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if index < len(token.inodes) and os.fstat(descriptors[kind]).st_ino != token.inodes[index]:
                raise ProcessLookupError
        yield descriptors
    except (FileNotFoundError, ProcessLookupError):
        raise _gone(token) from None
    except PermissionError:
        raise RuntimeFailure("its namespaces may not be entered", where=token.node, fix="run emu as root") from None
    finally:
        for fd in descriptors.values():
            os.close(fd)


@contextmanager
def _pid_namespace(fd: int | None) -> Iterator[None]:
    """Let children of this thread be born in the PID namespace `fd`."""
    with ExitStack() as stack:
        if fd is not None:
            own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, own)
            linux.setns(fd, linux.CLONE_NEWPID)
            stack.callback(linux.setns, own, linux.CLONE_NEWPID)
        yield


def _child(
    token: EnterToken, descriptors: dict[str, int], body: Callable[[Report], None], pipe: int, keep: set[int]
) -> None:
    """The forked child: enter, then `body`. Never returns."""

    def report(text: str) -> None:
        if text:
            os.write(pipe, text.encode()[:4096])
        os.close(pipe)

    try:
        forget_children()
        enter(token, descriptors)
        close_all_but({0, 1, 2, pipe, *keep})
        body(report)
    except BaseException as error:
        report(f"the node cannot be entered ({error})\nsee `emu status`, and run as root")
    finally:
        os._exit(127)


def enter(token: EnterToken, descriptors: dict[str, int]) -> None:
    """Become a process of the node: for a child that was just forked into its PID namespace."""
    reset_signals()
    for path in token.cgroups:
        join_cgroup(path)
    if token.processors:
        os.sched_setaffinity(0, token.processors)
    if not token.namespaces:
        os.environ.update(token.environment)
        return
    # The mount namespace comes last: after it the host's paths are gone.
    for kind in ("net", "uts", "ipc", "mnt"):
        if kind in descriptors:
            linux.setns(descriptors[kind], linux.NAMESPACE_FLAGS[kind])
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # until an exec: this memory is a copy of the caller's
    linux.bound_capabilities(token.capabilities)
    linux.keep_capabilities(token.capabilities)
    os.environ.clear()
    os.environ.update(token.environment)
    os.chdir(token.cwd)
    os.umask(0o022)


def join_cgroup(procs: str) -> None:
    """Put the calling process into the cgroup whose `cgroup.procs` this is."""
    fd = os.open(procs, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"0")
    finally:
        os.close(fd)


def reset_signals() -> None:
    """Give every signal its default action and unblock all, as a fresh program has it."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def cut_ties(keep: set[int]) -> None:
    """Make this process a session of its own, at the root, with fresh signals and no descriptors but `keep` and three
    that lead nowhere: nothing of the caller holds it, and it holds nothing of the caller's."""
    os.setsid()
    os.chdir("/")
    reset_signals()
    close_all_but(keep)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor of this process except these."""
    low = 0
    for fd in sorted(keep):
        if low < fd:  # Python 3.11 takes the empty range (0, 0) for "all there are"
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
