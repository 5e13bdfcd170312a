"""What runs in a container of the checked image: imports each package in a process of its own, and tells its end.

It stands alone: the image's Python (3.8 or newer) has nothing else of ours. `inside.py JSON` does the task that `main`
describes. Each line that it prints is a JSON object: first the Python and the number of subjects, then one for each.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import importlib.metadata
import json
import os
import re
import signal
import sys
import time
import traceback
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_NAME = re.compile(r"[A-Za-z_]\w*")


class Subject:
    """What one process checks: a package's modules and its extension modules, or a shared library."""

    def __init__(self, name: str, version: str = "", library: str = "") -> None:
        self.name, self.version, self.library = name, version, library
        self.modules: list[str] = []
        self.extensions: list[str] = []


def installed(only_below: list[str] | None) -> list[Subject]:
    """All packages on sys.path, or those in some of its directories; of two of one name the first counts."""
    found: dict[str, Subject] = {}
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if not name or (only_below is not None and str(one.locate_file("")).rstrip("/") not in only_below):
            continue
        subject = Subject(name, one.version)
        files = [str(file) for file in one.files or ()]
        listed = (one.read_text("top_level.txt") or "").split()
        tops = [word for word in listed if _NAME.fullmatch(word)] or modules(files)
        subject.modules = sorted(tops, key=lambda top: (top.lower() != name.lower().replace("-", "_"), top))
        subject.extensions = extensions(files)
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), subject)
    return [found[key] for key in sorted(found)]


def modules(files: Iterable[str]) -> list[str]:
    """The modules that stand above all others of a package, from the list of its files."""
    names = set()
    for file in files:
        folders, _, last = file.rpartition("/")
        if last == "__init__.py":
            names.add(folders.replace("/", "."))
        elif not folders:
            stem = last.partition(".")[0]
            if last.endswith((".py", *EXTENSION_SUFFIXES)):
                names.add(stem)
    whole = {name for name in names if all(_NAME.fullmatch(part) for part in name.split("."))}
    return sorted(name for name in whole if not any(name.startswith(other + ".") for other in whole))


def extensions(files: Iterable[str]) -> list[str]:
    """The compiled modules of a package."""
    names = set()
    for file in files:
        if file.endswith(tuple(EXTENSION_SUFFIXES)):
            folders, _, last = file.rpartition("/")
            parts = [*folders.split("/"), last.partition(".")[0]] if folders else [last.partition(".")[0]]
            if all(_NAME.fullmatch(part) for part in parts):
                names.add(".".join(parts))
    return sorted(names)


def numpy_products() -> None:
    import numpy

    for kind in ("float32", "float64", "int8"):
        square = numpy.ones((96, 96), kind)
        (square @ square).sum()
    numpy.linalg.inv(numpy.eye(32) * 2)


def torch_step() -> None:
    import torch

    images = torch.ones(4, 1, 28, 28)
    layer = torch.nn.Conv2d(1, 8, 5)
    torch.autograd.backward(torch.relu(layer(images)).sum())
    for kind in (torch.float32, torch.bfloat16):
        (torch.ones(96, 96, dtype=kind) @ torch.ones(96, 96, dtype=kind)).sum()


#: what is done beyond importing, for packages that choose their instructions when they are used
USES: dict[str, tuple[str, Callable[[], None]]] = {
    "numpy": ("matrix products and an inverse", numpy_products),
    "torch": ("a convolution forward and backward, matrix products", torch_step),
}


def check(subject: Subject, tell: Callable[..., None]) -> None:
    """Load all of a subject, telling each step before it is made."""
    if subject.library:
        tell(step=f"loading {subject.name}")
        ctypes.CDLL(subject.library)
        tell(did="loaded")
        return
    whole = True
    for name in subject.modules:
        tell(step=f"import {name}")
        whole &= _imported(name, tell)
    if subject.modules and whole:
        tell(did="import")
    loaded = 0
    for name in subject.extensions if whole else ():
        if name not in sys.modules:
            tell(step=f"import {name}")
            with suppress(Exception, SystemExit):  # private ones may refuse to be imported by themselves
                importlib.import_module(name)
        loaded += name in sys.modules
    if loaded:
        tell(did=f"{loaded} extension module{'s' if loaded > 1 else ''}")
    use = USES.get(subject.name.lower()) if whole else None
    if use:
        tell(step=use[0])
        use[1]()
        tell(did=use[0])


def _imported(name: str, tell: Callable[..., None]) -> bool:
    try:
        importlib.import_module(name)
    except BaseException as error:  # also SystemExit: some modules are scripts
        tell(error=_short(error))
        return False
    return True


def _short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class Child:
    """A process that checks one subject, and what it tells on the way."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.began = subject, time.monotonic()
        self._told, self._said = os.memfd_create("told", 0), os.memfd_create("said", 0)
        self.pid = os.fork()
        if self.pid == 0:
            self._run()
        with suppress(OSError):  # both do it, so that the group is there whoever comes first
            os.setpgid(self.pid, self.pid)

    def _run(self) -> NoReturn:
        status = 1
        try:
            with suppress(OSError):
                os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self._said, 1)
            os.dup2(self._said, 2)
            faulthandler.enable(2)
            check(self.subject, self._tell)
            status = 0
        except BaseException as error:
            self._tell(error=_short(error))
            traceback.print_exc()
            status = 0
        finally:
            os._exit(status)

    def _tell(self, **fact: str) -> None:
        os.write(self._told, json.dumps(fact).encode() + b"\n")

    def kill(self) -> None:
        """End all that is left of it and of what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def result(self, status: int, late: bool, owners: Callable[[str], str]) -> dict[str, Any]:
        """How it went, once it has ended with a wait status."""
        told = [json.loads(line) for line in _all(self._told).splitlines()]
        said = _all(self._said).decode(errors="replace")
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        out: dict[str, Any] = {
            "name": self.subject.name,
            "version": self.subject.version,
            "seconds": round(time.monotonic() - self.began, 1),
            "signal": 0 if late else ended,
            "late": late,
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            "did": [fact["did"] for fact in told if "did" in fact],
            "errors": [fact["error"] for fact in told if "error" in fact],
            "step": next((fact["step"] for fact in reversed(told) if "step" in fact), ""),
        }
        if ended and not late:
            out["at"], out["owner"] = blamed(said, owners)
        return out


def blamed(said: str, owner: Callable[[str], str]) -> tuple[str, str]:
    """The innermost line of a package's own code that faulthandler printed, and whose it is."""
    for file, line in _FRAME.findall(said.partition("Current thread")[2] or said):
        whose = owner(file)
        if whose:
            return f"{Path(file).parent.name}/{Path(file).name}:{line}", whose
    return "", ""


def owner_by_folder(subjects: Iterable[Subject]) -> Callable[[str], str]:
    """Which package a file belongs to, by the folder below a directory of sys.path that it lies in."""
    tops = {name.partition(".")[0]: subject.name for subject in subjects for name in subject.modules}
    places = sorted((path.rstrip("/") + "/" for path in sys.path if path), key=len, reverse=True)

    def owner(file: str) -> str:
        for place in places:
            if file.startswith(place):
                return tops.get(file[len(place) :].partition("/")[0].partition(".")[0], "")
        return ""

    return owner


def _all(file: int) -> bytes:
    with open(file, "rb") as opened:
        opened.seek(0)
        return opened.read()


def say(fact: dict[str, Any]) -> None:
    """A line for emu, which reads this program's output."""
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def run(subjects: list[Subject], everybody: list[Subject], parallel: int, seconds: float) -> None:
    """Check the subjects, a few at once, and print a line of each as it ends."""
    owners = owner_by_folder(everybody)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    waiting, late = list(subjects), set()
    running: dict[int, Child] = {}
    while waiting or running:
        while waiting and len(running) < parallel:
            child = Child(waiting.pop(0))
            running[child.pid] = child
        signal.sigtimedwait([signal.SIGCHLD], 0.2)
        for pid, child in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                child.kill()  # what it left behind
                say(running.pop(pid).result(status, pid in late, owners))
            elif time.monotonic() - child.began > seconds and pid not in late:
                late.add(pid)
                child.kill()


def main(task: dict[str, Any]) -> None:
    """Do a task: `below` (directories; null = all packages), `libraries` (paths), `parallel`, `seconds` each."""
    everybody = installed(None)
    subjects = everybody if task["below"] is None else installed(task["below"])
    subjects = subjects + [Subject(Path(path).name, library=path) for path in task["libraries"]]
    here = {"python": "{}.{}".format(*sys.version_info), "subjects": len(subjects)}
    say(here)
    run(subjects, everybody, task["parallel"], task["seconds"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
