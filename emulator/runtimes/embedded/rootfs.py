"""A node's private file system: an overlay over the host's root, with the kernel's own mounts made harmless.

Layers from the top: the node's `upper`, the lab's `common` (what is hidden, emptied or named alike in all nodes),
the host's `/`. All of it is mounted in the node's own mount namespace only: the host's mount table never changes,
and the kernel takes everything down with the node.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.core.errors import HostError
from emulator.core.linux import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY
from emulator.runtimes.embedded.view import EMPTIED

if TYPE_CHECKING:
    from emulator.runtimes.embedded.view import View

#: Docker's masked and read-only paths (moby, oci/defaults.go)
_MASKED = (
    "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/proc/kmsg", "/proc/kallsyms",
    "/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/debug", "/sys/kernel/security",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_DEVICE_LINKS = {
    "ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}  # fmt: skip
_SHM_SHARE = 0.5


@dataclass(frozen=True)
class Layers:
    """Where a lab's layers lie: `<base>/.common` and `<base>/<node>/{upper,work,root}`."""

    base: Path
    view: View
    hosts: str


def hosts_file(names: tuple[tuple[str, object], ...]) -> str:
    """/etc/hosts for these names and addresses."""
    lines = ["127.0.0.1\tlocalhost", *(f"{address}\t{name}" for name, address in names)]
    return "\n".join(lines) + "\n"


def prepare(base: Path, fallback: Path, view: View, hosts: str) -> Layers:
    """Make the directory for a lab's layers: `base`, or `fallback` where that cannot be written; raises HostError."""
    for place in (base, fallback):
        try:
            (place / ".common").mkdir(parents=True, mode=0o700, exist_ok=True)
            return Layers(place, view, hosts)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise HostError(
                    "the disk is full", where=str(place), fix="free space, or set EMU_NODE_DIR to a directory with some"
                ) from None
    raise HostError(
        "no directory for the nodes' files can be made",
        where=str(base),
        fix="set EMU_NODE_DIR to a writable directory",
    )


def mount_common(layers: Layers) -> None:
    """Make the lab's common layer, in memory, in the calling process's own mount namespace.

    In memory, since the kernel refuses a lower layer that lies within another one (here /).
    """
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    common = layers.base / ".common"
    linux.mount("emu", str(common), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    build_common(common, layers.view, layers.hosts)


def build_common(layer: Path, view: View, hosts: str) -> None:
    """Write the layer that all nodes of a lab share: empty places for what is hidden, and the hosts file."""
    for path, mode in view.hidden:
        place = _copy_parents(layer, path)
        place.mkdir(exist_ok=True)
        place.chmod(mode)
        os.setxattr(place, "trusted.overlay.opaque", b"y")
    for path in view.shown:
        _copy_parents(layer, path).mkdir(exist_ok=True)
    for path in EMPTIED:
        if Path(path).exists() or Path(path).is_symlink():
            _copy_parents(layer, path).write_bytes(b"")
    (layer / "etc" / "shadow").chmod(0o600)
    _copy_parents(layer, "/etc/hosts").write_text(hosts)
    for directory in ("proc", "sys", "dev"):
        (layer / directory).mkdir(exist_ok=True)


def _copy_parents(layer: Path, path: str) -> Path:
    """The place of `path` in a layer, its parents made with the host's modes (a layer's directory wins)."""
    place = layer
    for part in Path(path).parent.parts[1:]:
        place = place / part
        if not place.exists():
            place.mkdir()
            place.chmod(stat.S_IMODE((Path("/") / place.relative_to(layer)).stat().st_mode))
    return place / Path(path).name


def enter(layers: Layers, node: str, memory: int) -> None:
    """Give the calling process, alone in fresh mount, PID and network namespaces, the node's file system as /.

    Its mount namespace is a copy of one that `mount_common` was called in.
    """
    root = _overlay(layers, node)
    _kernel_mounts(root, memory)
    for path in layers.view.shown:
        linux.bind(path, root + path)
    _guard(root)
    os.chdir(root)
    linux.pivot_root(".", ".")
    linux.umount(".")
    os.chdir("/")


def _overlay(layers: Layers, node: str) -> str:
    """Mount the node's overlay and return where."""
    place = layers.base / node
    place.mkdir(mode=0o755, exist_ok=True)
    try:
        return _mount_overlay(layers.base / ".common", place)
    except OSError as error:
        # The disk's file system (an overlay, a network one, a read-only one) cannot be an upper layer.
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.EREMOTE, errno.EPERM, errno.EROFS, errno.EIO):
            raise
    linux.mount("emu", str(place), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    return _mount_overlay(layers.base / ".common", place)


def _mount_overlay(common: Path, place: Path) -> str:
    for name in ("upper", "work", "root"):
        (place / name).mkdir(exist_ok=True)
    (place / "upper").chmod(0o755)
    (place / "upper" / "etc").mkdir(exist_ok=True)
    (place / "upper" / "etc" / "hostname").write_text(place.name + "\n")
    layers = f"lowerdir={common}:/,upperdir={place}/upper,workdir={place}/work"
    try:
        # volatile (Linux 5.10): nothing of a node needs to survive a crash of the host, so never sync for it.
        linux.mount("emu", f"{place}/root", "overlay", MS_NOSUID | MS_NODEV, layers + ",volatile")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        linux.mount("emu", f"{place}/root", "overlay", MS_NOSUID | MS_NODEV, layers)
    return f"{place}/root"


def _kernel_mounts(root: str, memory: int) -> None:
    """Fresh /proc, /sys and /dev, with the harmless devices only."""
    quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC
    linux.mount("proc", f"{root}/proc", "proc", quiet)
    linux.mount("sysfs", f"{root}/sys", "sysfs", quiet | MS_RDONLY)
    dev = f"{root}/dev"
    linux.mount("emu", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k")
    for name, (major, minor) in _DEVICES.items():
        os.mknod(f"{dev}/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        os.chmod(f"{dev}/{name}", 0o666)  # noqa: PTH101 - a hot path
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"{dev}/{name}")  # noqa: PTH211 - a hot path
    os.mkdir(f"{dev}/pts")  # noqa: PTH102 - a hot path
    os.mkdir(f"{dev}/shm")  # noqa: PTH102 - a hot path
    linux.mount("devpts", f"{dev}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    size = f",size={max(int(memory * _SHM_SHARE), 1 << 20)}" if memory else ""
    linux.mount("emu", f"{dev}/shm", "tmpfs", quiet, f"mode=1777{size}")
    # mknod is among the kept capabilities; what it makes works nowhere: all mounts are nodev, /dev is read-only.
    linux.mount("emu", dev, "", linux.MS_REMOUNT | MS_NOSUID | MS_NOEXEC | MS_RDONLY, "mode=755,size=64k")


def _guard(root: str) -> None:
    """Mask what tells about the host, and make read-only what would change it."""
    for path in _MASKED:
        place = root + path
        if not os.path.exists(place):  # noqa: PTH110 - a hot path
            continue
        if os.path.isdir(place):  # noqa: PTH112 - a hot path
            linux.mount("emu", place, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k")
        else:
            linux.mount(f"{root}/dev/null", place, flags=linux.MS_BIND)
    for path in _READ_ONLY:
        place = root + path
        if os.path.exists(place):  # noqa: PTH110 - a hot path
            linux.mount(place, place, flags=linux.MS_BIND)
            flags = linux.MS_BIND | linux.MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
            linux.mount("none", place, flags=flags)
