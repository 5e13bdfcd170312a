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
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import linux
from emulator.core.errors import HostError
from emulator.core.linux import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY
from emulator.runtimes.embedded.view import EMPTIED
from emulator.runtimes.identity import MEMINFO, STAT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.runtimes.embedded.view import View
    from emulator.runtimes.identity import Machine

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
    """Where a lab's layers lie: `<base>/.common` and `<base>/<node>/{upper,work,root}`; in `<base>/.machines` what
    nodes show of themselves.

    `base` is an empty directory of the host, over which the lab has a tmpfs. `disk` holds the upper layers,
    `<disk>/<node>/{upper,work}`, where they are wanted on disk; `durable` where a node's `fsync` is to reach that disk.
    """

    base: Path
    view: View
    hosts: str
    disk: Path | None = None
    durable: bool = False


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


def mount_common(layers: Layers, machines: Iterable[Machine] = ()) -> None:
    """Make the lab's common layer and the files of its kinds of machine, in memory, in the calling process's own mount
    namespace.

    In memory, since the kernel refuses a lower layer that lies within another one (here /).
    """
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("emu", str(layers.base), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    common = layers.base / ".common"
    common.mkdir()
    build_common(common, layers.view, layers.hosts)
    (layers.base / ".machines").mkdir()
    for machine in machines:
        for path, text in machine.files().items():
            (layers.base / ".machines" / _name_of(machine, path)).write_text(text)


def _name_of(machine: Machine, path: str) -> str:
    """The name in `.machines` of what nodes of this kind have at a path."""
    return f"{hash(machine) & sys.maxsize:x}.{os.path.basename(path)}"  # noqa: PTH119 - a hot path


def gauge_place(layers: Layers, node: str) -> str:
    """Where a node's own files lie that are kept current (see `gauges`), without their ending."""
    return f"{layers.base}/.machines/{node}"


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


def enter(layers: Layers, node: str, memory: int, machine: Machine | None = None) -> None:
    """Give the calling process, alone in fresh mount, PID and network namespaces, the node's file system as /.

    Its mount namespace is a copy of one that `mount_common` was called in. With a `machine`, the node's two gauges
    (`gauge_place`) are there, too.
    """
    root = _overlay(layers, node, memory)
    _kernel_mounts(root, memory)
    if machine is not None:
        _show(layers, node, machine, root)
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
    # volatile (Linux 5.10): nothing of a node needs to survive a crash of the host, so never sync for it.
    speed = "" if layers.durable else ",volatile"
    try:
        linux.mount("emu", f"{place}/root", "overlay", MS_NOSUID | MS_NODEV, options + speed)
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


def _show(layers: Layers, node: str, machine: Machine, root: str) -> None:
    """Lay what the node shows of its machine over what the kernel shows of the host."""
    own = gauge_place(layers, node)
    shared = {path: f"{layers.base}/.machines/{_name_of(machine, path)}" for path in machine.files()}
    for path, source in (shared | {MEMINFO: f"{own}.meminfo", STAT: f"{own}.stat"}).items():
        if os.path.exists(root + path):  # noqa: PTH110 - a hot path
            linux.bind(source, root + path)


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
