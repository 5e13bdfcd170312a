"""A node's private file system: an overlay over the host's root, with the kernel's own mounts made harmless.

Layers from the top: the node's `upper`, the lab's `common` (what is hidden, emptied or named alike in all nodes),
the host's `/`. All of it is mounted in the lab's own mount namespaces only: the host's mount table never changes,
and the kernel takes everything down with the nodes.

The upper layer lies in memory (a tmpfs of half the node's memory, charged to the node), which takes 0.1 ms to make
where a disk took 5 ms, and 30 ms to clear; EMU_NODE_DIR puts it on disk.
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
    "/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
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
    """Where a lab's layers lie: `<base>/.common` and `<base>/<node>/{upper,work,root}`.

    `base` is an empty directory of the host, over which the lab has a tmpfs. `disk` holds the upper layers,
    `<disk>/<node>/{upper,work}`, where they are wanted on disk.
    """

    base: Path
    view: View
    hosts: str
    disk: Path | None = None


def hosts_file(names: tuple[tuple[str, object], ...]) -> str:
    """/etc/hosts for these names and addresses."""
    lines = ["127.0.0.1\tlocalhost", *(f"{address}\t{name}" for name, address in names)]
    return "\n".join(lines) + "\n"


def prepare(base: Path, view: View, hosts: str, disk: Path | None) -> Layers:
    """Make the directories for a lab's layers; raises HostError."""
    for place in (base, *([disk] if disk else [])):
        if set(str(place)) & set(",:\\"):
            raise HostError(
                "a comma, colon or backslash in this path cannot be told to overlayfs",
                where=str(place),
                fix="set EMU_STATE_DIR (or EMU_NODE_DIR, if it is set) to another directory",
            )
        try:
            place.mkdir(parents=True, mode=0o700, exist_ok=True)
        except OSError as error:
            raise HostError(
                f"no directory for the nodes' files can be made ({error.strerror})",
                where=str(place),
                fix="free space there, or set EMU_STATE_DIR (and EMU_NODE_DIR, if it is set) to a writable directory",
            ) from None
    return Layers(base, view, hosts, disk)


def mount_common(layers: Layers) -> None:
    """Make the lab's common layer, in memory, in the calling process's own mount namespace.

    In memory, since the kernel refuses a lower layer that lies within another one (here /).
    """
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("emu", str(layers.base), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    common = layers.base / ".common"
    common.mkdir()
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
    root = _overlay(layers, node, memory)
    _kernel_mounts(root, memory)
    for path in layers.view.shown:
        linux.bind(path, root + path)
    _guard(root)
    os.chdir(root)
    linux.pivot_root(".", ".")
    linux.umount(".")
    os.chdir("/")


def _overlay(layers: Layers, node: str, memory: int) -> str:
    """Mount the node's overlay and return where."""
    place = f"{layers.base}/{node}"
    os.mkdir(place)  # noqa: PTH102 - a hot path
    if layers.disk is not None:
        store = layers.disk / node
        store.mkdir(mode=0o755, exist_ok=True)
        try:
            return _mount_overlay(layers, str(store), place)
        except OSError as error:
            # The disk's file system (an overlay, a network one) cannot hold an upper layer: memory can.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.EREMOTE, errno.EPERM):
                raise
    size = f",size={max(memory // 2, 1 << 20)}" if memory else ""
    linux.mount("emu", place, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=755{size}")
    return _mount_overlay(layers, place, place)


def _mount_overlay(layers: Layers, store: str, place: str) -> str:
    for path in (f"{store}/upper", f"{store}/work", f"{store}/upper/etc", f"{place}/root"):
        os.mkdir(path, 0o755)  # noqa: PTH102 - a hot path
    with open(f"{store}/upper/etc/hostname", "w") as file:
        file.write(os.path.basename(place) + "\n")  # noqa: PTH119 - a hot path
    options = f"lowerdir={layers.base}/.common:/,upperdir={store}/upper,workdir={store}/work"
    try:
        # volatile (Linux 5.10): nothing of a node needs to survive a crash of the host, so never sync for it.
        linux.mount("emu", f"{place}/root", "overlay", MS_NOSUID | MS_NODEV, options + ",volatile")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        linux.mount("emu", f"{place}/root", "overlay", MS_NOSUID | MS_NODEV, options)
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
