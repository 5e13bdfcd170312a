"""The processes of one run: forked with their files, followed, and none left over."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError, RuntimeFailure, TrainingError
from emulator.core.record import RecordWriter
from emulator.training.snapshot import SUFFIX
from emulator.training.tail import Tail
from emulator.training.zygote import Ended, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from emulator.core.enter import EnterToken
    from emulator.training.zygote import Zygote

LAUNCHER = "launcher"
# Real seconds for killed processes to be reaped; the kernel needs milliseconds.
REAP_WITHIN = 10.0


class Crew:
    """Use as a context: on leaving it, also by an exception, what still runs is killed.

    Under `out`: `<name>.jsonl` (records) and `<name>.log` (output) of each process, and `snapshots/` while it lasts.
    """

    def __init__(self, zygote: Zygote, out: Path, on_record: Callable[[dict[str, Any]], None]) -> None:
        self._zygote = zygote
        self._out = out
        self._on_record = on_record
        self._tails: dict[str, Tail] = {}
        self._files = ExitStack()
        self.snapshots = out / "snapshots"
        #: processes asked for and not ended
        self.running: set[str] = set()
        self.exits: dict[str, Ended] = {}

    def __enter__(self) -> Crew:
        with self._files:
            self._make()
            self._files = self._files.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._files:
            self.signal(self.running, signal.SIGKILL)
            deadline = time.monotonic() + REAP_WITHIN
            while self.running and time.monotonic() < deadline:
                self._take_events(0.1)
            self._deliver()

    def _make(self) -> None:
        try:
            self.snapshots.mkdir(parents=True)
        except OSError as error:
            raise ResultError(
                f"no run can be written here ({error.strerror})", where=str(self._out), fix="give another --out"
            ) from None
        self._files.callback(self._remove_snapshots)
        self._directory = self._open(self.snapshots, os.O_RDONLY | os.O_DIRECTORY)
        self._notes = self._records(LAUNCHER)

    def fork(self, name: str, token: EnterToken, job: dict[str, Any]) -> None:
        """Ask for a process; `events` of the zygote tell when it is there."""
        log = self._open(self._out / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._zygote.fork(name, token, job, [log, self._records(name), self._directory])
        self.running.add(name)

    def step(self, timeout: float) -> list[Ended]:
        """The processes that end within `timeout` real seconds (at the first of them); new records are handed on.

        Raises RuntimeFailure if one could not be put into its node, TrainingError if the warmed process has died.
        """
        ended, refused = self._take_events(timeout)
        if refused is not None:
            raise RuntimeFailure(refused.what, where=refused.id, fix=refused.fix)
        self._deliver()
        return ended

    def note(self, t: float, node: str, kind: str, **fields: Any) -> None:
        """Write a record about a node that cannot write it itself."""
        RecordWriter(self._notes, node)(t, kind, fields)

    def left(self) -> int:
        """How many snapshots are still to be evaluated."""
        return len(list(self.snapshots.glob(f"*{SUFFIX}")))

    def signal(self, names: Iterable[str], number: int) -> None:
        """Send a signal to those that run."""
        for name in sorted(names):
            self._zygote.signal(name, number)

    def failure(self, ended: Ended, before: str = "") -> TrainingError:
        """The sentence for a process without which the run is worth nothing."""
        how = f"by {signal.Signals(ended.signal).name}" if ended.signal else f"with exit status {ended.code}"
        log = self._out / f"{ended.id}.log"
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        said = f"; its last words: {' | '.join(lines[-5:])}" if lines else ""
        fix = f"see {log}" if lines else "see the kernel's log (dmesg): it may have run out of memory"
        return TrainingError(f"{before}the process ended {how}{said}", where=ended.id, fix=fix)

    def _take_events(self, timeout: float) -> tuple[list[Ended], Refused | None]:
        ended, refused = [], None
        for event in self._zygote.events(timeout):
            if isinstance(event, Ended):
                self.running.discard(event.id)
                self.exits[event.id] = event
                ended.append(event)
            elif isinstance(event, Refused):
                self.running.discard(event.id)
                refused = event
        return ended, refused

    def _deliver(self) -> None:
        for tail in self._tails.values():
            for record in tail.new():
                self._on_record(record)

    def _records(self, name: str) -> int:
        path = self._out / f"{name}.jsonl"
        descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if name not in self._tails:
            self._tails[name] = self._files.enter_context(Tail(path))
        return descriptor

    def _open(self, path: Path, flags: int) -> int:
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ResultError(
                f"it cannot be opened ({error.strerror})", where=str(path), fix="free space, or give another --out"
            ) from None
        self._files.callback(os.close, descriptor)
        return descriptor

    def _remove_snapshots(self) -> None:
        for path in self.snapshots.iterdir():
            path.unlink()
        self.snapshots.rmdir()
