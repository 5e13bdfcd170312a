"""Start any program in a node."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import termios
from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.core.enter import NodeProcess, fork_with_report
from emulator.runtimes import terminal
from emulator.runtimes.terminal import TerminalProcess

if TYPE_CHECKING:
    from emulator.core.enter import EnterToken, Report
    from emulator.runtimes.base import Command

_REASONS = {
    errno.ENOENT: ("is not there", "give a program that is on the node's PATH, or its whole path"),
    errno.EACCES: ("may not be executed", "make it executable, or name its interpreter"),
    errno.ENOEXEC: ("is not a program", "name its interpreter (sh FILE, python FILE)"),
}


def start(token: EnterToken, command: Command) -> NodeProcess | TerminalProcess:
    """Start `command` in the node of `token`; raises RuntimeFailure when it cannot be found or the node is gone.

    With `tty`, and the caller's own terminal as stdin, the program gets a terminal of its own, copied by `wait`.
    """
    if not (command.tty and terminal.is_own(command.stdin)):
        return _start(token, command)
    assert command.stdin is not None, "a terminal was found there"
    master, slave = os.openpty()
    try:
        terminal.copy_size(command.stdin, slave)
        env = (("TERM", os.environ.get("TERM", "linux")), *command.env)
        process = _start(token, replace(command, stdin=slave, stdout=slave, stderr=slave, env=env))
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return TerminalProcess(process, master, command.stdin, command.stdin if command.stdout is None else command.stdout)


def _start(token: EnterToken, command: Command) -> NodeProcess:
    environment = dict(token.environment) | dict(command.env)
    streams = (command.stdin, command.stdout, command.stderr)

    def body(report: Report) -> None:
        try:
            _become(command, environment, token.cwd)
        except OSError as error:
            report(_sentence(command, error))
        except ValueError as error:  # a NUL or an empty name, in the program or its environment
            report(f"the program {command.argv[0]!r} cannot be started ({error})\nmend its name or its environment")

    kept = {*command.inherit, *(fd for fd in streams if fd is not None)}
    return fork_with_report(token, body, keep=kept)


def _become(command: Command, environment: dict[str, str], cwd: str) -> None:
    streams = (command.stdin, command.stdout, command.stderr)
    # Duplicates above 2 first: a stream may itself be one of 0, 1, 2.
    sources = [
        fcntl.fcntl(os.open("/dev/null", os.O_RDWR) if fd is None else fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in streams
    ]
    for target, source in enumerate(sources):
        os.dup2(source, target)
    for fd in command.inherit:
        os.set_inheritable(fd, True)
    if command.tty:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    become(command.argv, environment, command.cwd or cwd)


def become(argv: tuple[str, ...], environment: dict[str, str], cwd: str) -> None:
    """Replace this process by a program, found on the environment's PATH; raises OSError when that fails."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(cwd)
    os.execvpe(argv[0], list(argv), environment)


def _sentence(command: Command, error: OSError) -> str:
    if error.filename is not None and error.filename == command.cwd:
        return f"the directory {command.cwd!r} cannot be entered ({error.strerror})\nname one that the node has"
    what, fix = _REASONS.get(error.errno or 0, (f"cannot be started ({error.strerror})", "see `emu shell`"))
    return f"the program {command.argv[0]!r} {what}\n{fix}"
