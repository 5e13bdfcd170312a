"""Where the kernel's controllers are mounted, and the cgroups of a lab in them (version 1, 2, or both at once).

Every process of a lab is in `emu/<lab>/<node>` or `emu/<lab>/.control` of the *marking* hierarchy (see
`emulator.core.marks`), also while it is half made: cleaning goes by that alone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core import marks
from emulator.core.clock import RealClock
from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.lab_id import CGROUP_ROOT

if TYPE_CHECKING:
    from emulator.core.lab_id import LabId

NEEDED = ("cpu", "memory", "pids")
#: the controller of disks, by the version whose files it takes; a host may lack it, and then storage is not capped
DISKS_V1, DISKS_V2 = "blkio", "io"
_OURS = (*NEEDED, "cpuacct", DISKS_V1)


@dataclass(frozen=True)
class Hierarchies:
    """Mount points: `v1` by controller, `v2` with the controllers that are free there; `mark` finds processes."""

    v1: Mapping[str, Path]
    v2: Path | None
    v2_controllers: frozenset[str]
    mark: Path

    def root(self, controller: str) -> Path | None:
        """Where a controller is mounted; None when this host has it nowhere."""
        if controller in self.v1:
            return self.v1[controller]
        if self.v2 is not None and (controller in self.v2_controllers or controller == "cpuacct"):
            return self.v2
        return None

    def is_v2(self, controller: str) -> bool:
        """Whether a controller must be spoken to in version 2's files."""
        return controller not in self.v1

    @property
    def disks(self) -> str:
        """The name of the controller of disks here; empty when this host has none."""
        return next((name for name in (DISKS_V1, DISKS_V2) if self.root(name) is not None), "")

    @property
    def cpu_time(self) -> str:
        """The file of the controller cpuacct that `seconds` reads."""
        return "cpu.stat" if self.is_v2("cpuacct") else "cpuacct.usage"

    @property
    def roots(self) -> list[Path]:
        """Every hierarchy that a node has a group in, the marking one first."""
        found = [self.root(name) for name in (*NEEDED, "cpuacct", self.disks)]
        return list(dict.fromkeys([self.mark, *(path for path in found if path is not None)]))


def detect(mountinfo: str | None = None) -> Hierarchies:
    """Read the mounted hierarchies of this host; raises HostError when nothing can mark processes."""
    v1: dict[str, Path] = {}
    v2: Path | None = None
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        kind, _, options = tail.split(" ", 2)
        point = Path(head.split()[4])
        if kind == "cgroup":
            for option in options.split(","):
                if option in _OURS:
                    v1.setdefault(option, point)
        elif kind == "cgroup2" and v2 is None:
            v2 = point
    free = (v2 / "cgroup.controllers").read_text().split() if v2 is not None and v2.is_dir() else []
    return Hierarchies(v1, v2, frozenset(free), marks.mark_root())


def control_group(lab: LabId) -> Path:
    """The `cgroup.procs` that a helper process of the lab (relay, zygote, supervisor) writes itself to."""
    return marks.control_group(lab) / "cgroup.procs"


@dataclass(frozen=True)
class NodeGroups:
    """A node's cgroups by the root of their hierarchy, the marking one first."""

    hierarchies: Hierarchies
    groups: Mapping[Path, Path]

    @staticmethod
    def of(hierarchies: Hierarchies, lab: LabId, node: str) -> NodeGroups:
        """Those that we make ourselves: `emu/<lab>/<node>` in every hierarchy."""
        return NodeGroups(hierarchies, {root: root / lab.node_cgroup(node) for root in hierarchies.roots})

    @staticmethod
    def of_process(hierarchies: Hierarchies, pid: int) -> NodeGroups:
        """Those that a process is in, whoever made them; raises RuntimeFailure when it has ended."""
        try:
            lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            raise RuntimeFailure(f"process {pid} has ended", fix="see `emu status`") from None
        groups = {}
        for line in lines:
            _, controllers, path = line.split(":", 2)
            root = hierarchies.v1.get(controllers.split(",")[0]) if controllers else hierarchies.v2
            if root in hierarchies.roots and root is not None:
                groups[root] = root / path.lstrip("/")
        return NodeGroups(hierarchies, groups)

    @property
    def all(self) -> list[Path]:
        """The groups themselves."""
        return list(self.groups.values())

    def file(self, controller: str, name: str) -> Path:
        """A control file."""
        root = self.hierarchies.root(controller)
        assert root is not None, f"probe() passed a host without {controller}"
        return self.groups[root] / name


def prepare(hierarchies: Hierarchies, lab: LabId) -> None:
    """Make the lab's own groups, and on version 2 hand the controllers down to its nodes; raises HostError."""
    for root in hierarchies.roots:
        group = root / lab.cgroup
        try:
            group.mkdir(parents=True, exist_ok=True)
            if root == hierarchies.v2:
                wanted = [
                    name
                    for name in (*NEEDED, DISKS_V2)
                    if hierarchies.is_v2(name) and name in hierarchies.v2_controllers
                ]
                for level in (root, root / CGROUP_ROOT, group):
                    _enable(level, wanted)
        except OSError as error:
            raise HostError(
                f"a control group cannot be made ({os.strerror(error.errno or 0)})",
                where=str(error.filename or group),
                fix="run as root, in a container with --privileged and --cgroupns=host, so that cgroups are writable",
            ) from None


def _enable(level: Path, wanted: list[str]) -> None:
    """Hand controllers down from `level` to its children, only those that are not yet."""
    file = level / "cgroup.subtree_control"
    missing = [name for name in wanted if name not in file.read_text().split()]
    if missing:
        write(file, " ".join(f"+{name}" for name in missing))


def write(file: Path | str, value: str) -> None:
    """Write a control file in one unbuffered `write`, so that the kernel's refusal is seen; raises OSError."""
    fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    except OSError as error:
        raise OSError(error.errno, f"writing {value!r}: {os.strerror(error.errno or 0)}", str(file)) from None
    finally:
        os.close(fd)


def read(file: Path | str) -> str:
    """A control file's text in one unbuffered `read`."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 65536).decode()
    finally:
        os.close(fd)


def seconds(file: Path | str) -> float:
    """CPU seconds, out of version 1's cpuacct.usage (nanoseconds) or version 2's cpu.stat."""
    text = read(file).strip()
    if text.isdigit():
        return int(text) / 1e9
    return int(dict(line.split() for line in text.splitlines())["usage_usec"]) / 1e6


def mounted_roots() -> list[Path]:
    """Every cgroup hierarchy mounted here, whether we need it or not: leftovers are looked for in all."""
    roots: dict[Path, None] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        head, _, tail = line.partition(" - ")
        if tail.startswith(("cgroup ", "cgroup2 ")):
            roots[Path(head.split()[4])] = None
    return list(roots)


def groups_below(group: Path) -> Iterator[Path]:
    """A cgroup's descendants and itself, children first; none when it is not there."""
    try:
        children = [entry.path for entry in os.scandir(group) if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV):
            raise
        return
    for child in children:
        yield from groups_below(Path(child))
    yield group


def processes(group: Path) -> list[int]:
    """Pids in a cgroup itself (0, a process of an outer PID namespace, left out); none when it has gone."""
    try:
        text = (group / "cgroup.procs").read_text()
    except OSError as error:
        # A threaded group on version 2 refuses to list processes; its members are listed one level up.
        if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
            return []
        raise
    return [pid for pid in map(int, text.split()) if pid > 0]


def remove_group(group: Path, patience: float = 3.0) -> bool:
    """rmdir a cgroup, again while the kernel still counts the dead in it; False when there was none."""
    clock = RealClock()
    deadline = clock.now() + patience
    while True:
        try:
            group.rmdir()
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EBUSY or clock.now() > deadline:
                raise RuntimeFailure(
                    f"a control group cannot be removed ({error.strerror})",
                    where=str(group),
                    fix="end what runs in it (cgroup.procs lists the pids), then run `emu down --all` again",
                ) from None
            clock.sleep(0.002)
