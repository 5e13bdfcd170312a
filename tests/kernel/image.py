"""Debian's stock kernel, unpacked in a cache directory; nothing is installed on the host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from emulator.core.errors import HostError

META = "linux-image-amd64"


def cache() -> Path:
    """Where unpacked kernels lie: EMU_KERNEL_DIR, else the user's cache directory."""
    given = os.environ.get("EMU_KERNEL_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu" / "kernel"


def kernel() -> Path:
    """The kernel to boot, its modules beside it; downloaded and unpacked when it is not there yet.

    Raises HostError when it can be neither found nor fetched.
    """
    kept = sorted(cache().glob("linux-image-*/boot/vmlinuz-*"))
    package = _newest()
    if package is None:
        if kept:
            return kept[-1]
        raise HostError(
            f"there is no {META} to boot (apt does not know it)",
            fix="run this on Debian or Ubuntu after `apt-get update`, or unpack a linux-image package to "
            f"{cache() / 'linux-image-VERSION'} and run depmod there",
        )
    root = cache() / package
    if not list(root.glob("boot/vmlinuz-*")):
        _fetch(package, root)
    return next(root.glob("boot/vmlinuz-*"))


def _newest() -> str | None:
    """The package that the meta package stands for now, as far as apt knows."""
    if shutil.which("apt-cache") is None:
        return None
    done = subprocess.run(["apt-cache", "depends", META], capture_output=True, text=True, check=False)
    names = [line.split()[-1] for line in done.stdout.splitlines() if "Depends: linux-image-" in line]
    return names[0] if names else None


def _fetch(package: str, root: Path) -> None:
    """Download and unpack, in a directory that gets its name only when it is whole."""
    part = root.with_name(f".{root.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    print(f"fetching {package} to {root.parent} (once)", flush=True)
    _run(["apt-get", "download", "-qq", package], part, "run `apt-get update` and see that the mirror is reachable")
    deb = next(part.glob("*.deb"))
    _run(["dpkg", "-x", str(deb), "."], part, f"free about 500 MB in {part}")
    deb.unlink()
    version = next(part.glob("lib/modules/*")).name
    _run(["depmod", "-b", ".", version], part, "install kmod (`apt-get install kmod`)")
    part.rename(root)


def _run(command: list[str], where: Path, fix: str) -> None:
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HostError(f"{command[0]} is not installed", where="the test kernel", fix=fix) from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostError(f"`{' '.join(command)}` failed ({reason})", where="the test kernel", fix=fix)
