"""A program of one's own, run on the target's core: here if it is static, else in a container with its libraries."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from emulator.core.clock import RealClock
from emulator.core.errors import RuntimeFailure
from emulator.isa import container
from emulator.isa.finding import Finding, signal_name
from emulator.isa.target import ARCH, for_programs

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Sequence
    from pathlib import Path

    from docker.api.client import APIClient

    from emulator.isa.target import Target

_TAIL = 300


def check(path: Path, arguments: Sequence[str], target: Target, seconds: float) -> Finding:
    """Run a static program on this host, with the user's own rights, for at most `seconds`.

    Raises HostError where nothing runs it on that core.
    """
    words, _ = for_programs(target)
    clock = RealClock()
    began = clock.now()
    with tempfile.TemporaryFile() as said:
        try:
            started = subprocess.Popen(
                [*words, str(path.resolve()), *arguments], env={**os.environ, **target.environment},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, preexec_fn=_no_core,
            )  # fmt: skip
        except OSError as error:
            raise RuntimeFailure(
                f"it cannot be started ({error.strerror})", where=str(path), fix="make it executable (chmod +x)"
            ) from None
        try:
            status: int | None = started.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - 4 * _TAIL))
        text = said.read().decode(errors="replace")
    return _finding(path, str(path), status, text, clock.now() - began)


def check_in_image(
    client: APIClient, path: Path, arguments: Sequence[str], image: str, target: Target, seconds: float
) -> Finding:
    """Run a program in a container of an image; raises HostError and UsageError as `container.find` does."""
    found = container.find(client, image, ARCH)
    inside = f"{container.FOLDER}/{path.name}"

    def pack(archive: tarfile.TarFile) -> None:
        archive.add(path.resolve(), inside.lstrip("/"), filter=_executable)

    box = container.Box()
    clock = RealClock()
    began = clock.now()
    limit = max(1, round(seconds))
    words = [inside, *arguments]
    with closing(container.run(client, found, words, target.environment, pack, box, limit)) as lines:
        output = list(lines)[-5:]
    took = clock.now() - began
    status = box.status
    if status is None:
        return container.shell_died(box, image)
    if status > 128:
        status = None if status == 128 + signal.SIGKILL and took >= limit else 128 - status
    return _finding(path, image, status, "\n".join([*output, box.errors]), took)


def _finding(path: Path, subject: str, status: int | None, said: str, took: float) -> Finding:
    """`status` as `subprocess` has it; None = it still ran when its time was over."""
    said = " ".join(said.split())[-_TAIL:]
    seconds = round(took, 1)
    if status is None:
        detail = "it still ran when its time was over, and was ended"
        return Finding(subject, path.name, "ok", did=("run",), detail=detail, seconds=seconds, given=True)
    if status < 0:
        name = signal_name(-status)
        return Finding(
            subject, path.name, "dies", signal=name, step="running it", detail=said, seconds=seconds, given=True
        )
    if status in (126, 127):  # of a shell or a loader: it did not come to run
        return Finding(subject, path.name, "unknown", detail=said or f"exit status {status}", given=True)
    detail = f"it ended with exit status {status}{f' ({said})' if said else ''}" if status else ""
    return Finding(subject, path.name, "ok", did=("run",), detail=detail, seconds=seconds, given=True)


def _no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _executable(item: tarfile.TarInfo) -> tarfile.TarInfo:
    item.mode = 0o755
    return item
