"""A base image without a registry: a small Debian with Python, made by mmdebstrap for either processor."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import HostError
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


def tar(arch: str, foreign: bool, cache: Path, say: Callable[[str], None]) -> Path:
    """The root file system's archive, from the cache if it is there; raises HostError when it cannot be made."""
    kept = cache / f"{SUITE}-{arch}.tar"
    if kept.exists():
        return kept
    if shutil.which("mmdebstrap") is None:
        raise HostError("mmdebstrap is not installed", fix="apt install mmdebstrap, or give --base an image")
    if foreign:
        binfmt.require(arch)
        if shutil.which("arch-test") is None:
            raise HostError("mmdebstrap needs arch-test for another processor", fix="apt install arch-test")
    cache.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial.tar")
    say(f"making a Debian {SUITE} for {arch} (half a minute; two under QEMU)")
    command = [
        "mmdebstrap",
        f"--architectures={arch}",
        "--variant=minbase",
        f"--include={_INCLUDE}",
        SUITE,
        str(partial),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = next(
                (line for line in reversed(done.stderr.splitlines()) if line.startswith("E:")), "see its output"
            )
            raise HostError(f"mmdebstrap failed ({said})", fix="check the network and the disk's space")
        partial.rename(kept)
    finally:
        partial.unlink(missing_ok=True)
    return kept
