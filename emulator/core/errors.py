"""Errors that a person can act on: what happened, where, and how to mend it.

A user's mistake or a machine's limit is an `EmuError` and is shown as one sentence; anything else is a bug of
ours and stays loud. Exit codes are one per class, listed in docs/errors.md (a test keeps that page complete).
"""

from __future__ import annotations

import sys


class EmuError(Exception):
    """Base of all errors shown without a traceback.

    `what` is the fact, `where` the file (with line), node, link or command, `fix` the remedy.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str) -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}; {self.fix}"


class UsageError(EmuError):
    """The command line is wrong; the option parser's own findings are told as one of these too."""

    exit_code = 2


class TopologyError(EmuError):
    """A topology file cannot be read, or does not resolve to a Plan."""

    exit_code = 10


class ExperimentError(EmuError):
    """An experiment file, one of its settings, or a plug-in that it names is wrong."""

    exit_code = 11


class DeviceError(EmuError):
    """A device profile cannot be read, has wrong or contradictory figures, or a name that is taken."""

    exit_code = 12


class HostError(EmuError):
    """This host lacks something that the run needs: root, a kernel feature, a controller, memory."""

    exit_code = 20


def no_more_processes() -> HostError:
    """This host, or the control group that emu runs in, gives no further process or thread."""
    return HostError(
        "no more processes or threads can be started",
        fix="end some, or raise the limit (`ulimit -u`, pids.max of the control group)",
    )


def no_interpreter() -> HostError:
    """The Python that runs emu cannot be started a second time by this user."""
    return HostError(
        "this user may not start the Python that emu runs on",
        where=sys.executable,
        fix="run emu as a user who may (sudo), or install it where this one may read it",
    )


class LabError(EmuError):
    """A lab is not in the state that the command needs: not running, name taken, half removed."""

    exit_code = 21


class RuntimeFailure(EmuError):
    """A runtime could not make, enter or remove a node."""

    exit_code = 22


class LinkError(EmuError):
    """A link driver could not make or change a cable."""

    exit_code = 23


class DataError(EmuError):
    """A data set cannot be fetched, is damaged, or cannot be read."""

    exit_code = 30


class TrainingError(EmuError):
    """A training role failed, or a message of a peer could not be understood."""

    exit_code = 31


class BenchmarkError(EmuError):
    """A benchmark program in the nodes failed, or ended without a result."""

    exit_code = 34


class ResultError(EmuError):
    """A run directory cannot be read or written."""

    exit_code = 32


class DegradedError(EmuError):
    """The host could not carry a run as planned: its figures are marked, or `--strict` has stopped it."""

    exit_code = 33
