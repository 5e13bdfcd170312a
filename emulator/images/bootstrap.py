"""A base image without a registry: a small Debian with Python, made by mmdebstrap for either processor."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.core.errors import HostError
from emulator.images import cache
from emulator.runtimes import binfmt

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = "bookworm"
_INCLUDE = "python3,ca-certificates,iproute2,iputils-ping"
DOCKERFILE = """FROM scratch
ADD root.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CMD ["sh"]
"""


def tar(arch: str, foreign: bool, folder: Path, say: Callable[[str], None]) -> Path:
    """The root file system's archive, from the cache if it is there; raises HostError when it cannot be made."""
    kept = folder / f"{SUITE}-{arch}.tar"
    if kept.exists():
        return kept
    if shutil.which("mmdebstrap") is None:
        raise HostError("mmdebstrap is not installed", fix="apt install mmdebstrap, or give --base an image")
    if foreign:
        binfmt.require(arch)
        if shutil.which("arch-test") is None:
            raise HostError("mmdebstrap needs arch-test for another processor", fix="apt install arch-test")

    def make(partial: Path) -> None:
        say(f"making a Debian {SUITE} for {arch} (half a minute; two under QEMU)")
        _mmdebstrap(arch, partial)

    return cache.made(kept, make, say)


def _mmdebstrap(arch: str, target: Path) -> None:
    command = [
        "mmdebstrap",
        f"--architectures={arch}",
        "--variant=minbase",
        f"--include={_INCLUDE}",
        SUITE,
        str(target),
    ]
    # The system that it makes lies beside the target, so that whoever clears up after a killed one finds it.
    environment = os.environ | {"TMPDIR": str(target.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=environment, preexec_fn=_end_with_parent,
    ) as process:  # fmt: skip
        try:
            said = process.communicate()[1]
        except BaseException:
            process.terminate()  # it clears up; killed it would not
            process.wait()
            raise
    if process.returncode:
        raise _failure(said, target)


def _end_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGTERM)


def _failure(said: str, target: Path) -> HostError:
    if "No space left" in said or "not have enough free space" in said:
        return cache.full(target.parent.parent)
    errors = [line for line in said.splitlines() if line.startswith("E:")]
    fact = "; ".join(line.removeprefix("E:").strip() for line in errors[:1]) or "it gave no reason"
    return HostError(f"mmdebstrap failed ({fact})", fix="check the network (apt-get update), or give --base an image")
