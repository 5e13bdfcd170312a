"""Where runs lie: `<root>/<name>/<time>-<seed>/`, made, listed, found and written without ever being half there.

Frozen layout: run.json (state, facts of the host), plan.json, experiment.json, `<variant>/<repeat>/<node>.jsonl`,
summary.json and report.html.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core import clock
from emulator.core.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
ROOT = Path("runs")
#: what a full disk says
FULL = (errno.ENOSPC, errno.EDQUOT)
STATES = ("running", "finished", "interrupted", "failed")


@dataclass(frozen=True)
class Run:
    """A run's directory. `name` is its experiment, `id` is `<time>-<seed>`."""

    directory: Path

    @property
    def name(self) -> str:
        return self.directory.parent.name

    @property
    def id(self) -> str:
        return self.directory.name

    def read(self, file: str) -> dict[str, Any]:
        """A JSON file of the run; raises ResultError where it is missing, damaged or of another version."""
        path = self.directory / file
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ResultError(
                f"this file of the run cannot be read ({error.strerror})",
                where=str(path),
                fix="name a run that `emu runs` lists, or remove this one",
            ) from None
        except ValueError:
            raise ResultError("this file is not JSON", where=str(path), fix="remove this damaged run") from None
        if not isinstance(value, dict) or value.get("version") != VERSION:
            found = value.get("version") if isinstance(value, dict) else None
            raise ResultError(
                f"format version {found!r} is not known (this emu reads {VERSION})",
                where=str(path),
                fix="read it with the emu that wrote it",
            )
        return value

    def write(self, file: str, value: dict[str, Any]) -> None:
        """Write a JSON file whole or not at all; raises ResultError, for instance for a full disk."""
        self.write_text(file, json.dumps({"version": VERSION} | value, indent=1, allow_nan=False) + "\n")

    def write_text(self, file: str, text: str) -> None:
        """Write a text file whole or not at all; raises ResultError, for instance for a full disk."""
        path = self.directory / file
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with writing(path):
            try:
                temporary.write_text(text, encoding="utf-8")
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)

    def state(self) -> str:
        """One of `STATES`; a run whose process is gone without a word counts as interrupted.

        Raises ResultError for a damaged run.json.
        """
        facts = self.read("run.json")
        state, pid = str(facts.get("state")), facts.get("pid")
        damaged = "state" if state not in STATES else "pid" if state == "running" and type(pid) is not int else ""
        if damaged:
            raise ResultError(
                f"`{damaged}` cannot be {facts.get(damaged)!r}",
                where=str(self.directory / "run.json"),
                fix="remove this damaged run",
            )
        if state == "running" and facts.get("process") != process_mark(facts["pid"]):
            return "interrupted"
        return state

    def update(self, **facts: Any) -> None:
        """Change facts in run.json, keeping the rest."""
        self.write("run.json", self.read("run.json") | facts)


def create(root: Path, name: str, seed: int) -> Run:
    """Make the directory of a new run, in state "running" under this process."""
    stem = f"{clock.timestamp()}-{seed}"
    with writing(root):
        (root / name).mkdir(parents=True, exist_ok=True)
        directory = _fresh(root / name, stem)
    run = Run(directory)
    pid = os.getpid()
    facts = {"state": "running", "pid": pid, "process": process_mark(pid), "started": clock.epoch()}
    try:
        run.write("run.json", facts)
    except BaseException:
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise
    return run


def _fresh(parent: Path, stem: str) -> Path:
    number = 1
    while True:
        directory = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            directory.mkdir()
        except FileExistsError:
            number += 1
        else:
            return directory


def process_mark(pid: int) -> str | None:
    """The start time of a process, which tells it from a later one of the same number; None = gone."""
    try:
        text = Path(f"/proc/{int(pid)}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]


def runs(root: Path = ROOT) -> list[Run]:
    """All runs under `root`, newest first; directories without a run.json are not ours."""
    found = [Run(path.parent) for path in root.glob("*/*/run.json")]
    return sorted(found, key=lambda run: (run.id, run.name), reverse=True)


def find(text: str, root: Path = ROOT) -> Run:
    """The run that a person means by "latest", a directory, NAME (its latest), NAME/ID or ID.

    Raises ResultError with the nearest name where there is none.
    """
    if (Path(text) / "run.json").is_file():
        return Run(Path(text).resolve())
    known = runs(root)
    if not known:
        raise ResultError(f"there are no runs in {root}/", where=text, fix="make one with `emu experiment quick`")
    for run in known:
        if text in ("latest", run.name, run.id, f"{run.name}/{run.id}"):
            return run
    names = [name for run in known for name in (f"{run.name}/{run.id}", run.id, run.name)]
    near = difflib.get_close_matches(text, names, 1, 0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ResultError(f"there is no run {text!r} in {root}/", fix=f"{hint}`emu runs` lists them")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translate what the file system says into a sentence with its remedy."""
    try:
        yield
    except OSError as error:
        full = error.errno in FULL
        fix = (
            "free some space; what was written so far stays readable by `emu report`"
            if full
            else "choose another place with --out"
        )
        raise ResultError(f"cannot write results ({error.strerror})", where=str(path), fix=fix) from None
