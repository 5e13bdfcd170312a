"""A node's caps in its cgroups: set, read back, and the usage counted against them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.marks import CONTROL
from emulator.core.units import Delay, Size
from emulator.runtimes import cgroups
from emulator.runtimes.base import Usage
from emulator.runtimes.cgroups import NodeGroups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.core.lab_id import LabId
    from emulator.core.plan import NodePlan
    from emulator.runtimes.cgroups import Hierarchies

#: The kernel refuses a quota under 1 ms and a period over 1 s; a short period keeps stalls short.
_SHORTEST_PERIOD_US, _LONGEST_PERIOD_US, _SMALLEST_QUOTA_US = 10_000, 1_000_000, 1_000
_CLOCK_MONOTONIC_COARSE = 6  # from linux/time.h; its resolution is the tick
#: how many ordinary processes of the host one core of a lab weighs as much as
PRECEDENCE = 10
#: seconds; the kernel takes CPU time from a quota once in this long
TICK = time.clock_getres(_CLOCK_MONOTONIC_COARSE)
#: files that a kernel may lack: it has no swap accounting, or no burst (before Linux 5.14)
_BURST = {False: "cpu.cfs_burst_us", True: "cpu.max.burst"}  # by whether it is version 2
_OPTIONAL = ("memory.memsw.limit_in_bytes", "memory.swap.max", *_BURST.values())
_PAGE = os.sysconf("SC_PAGE_SIZE")


def quota(share: float) -> tuple[int, int]:
    """(quota, period) in microseconds for a share of host cores; raises HostError under a thousandth of a core.

    The period is max(10 ms, 1 ms / share), so that the quota never falls under the kernel's least, 1 ms.
    """
    period = max(_SHORTEST_PERIOD_US, round(_SMALLEST_QUOTA_US / share)) if share > 0 else _LONGEST_PERIOD_US + 1
    if period > _LONGEST_PERIOD_US:
        raise HostError(
            f"a node cannot be given {share:.2g} host cores: the kernel's least is 0.001",
            fix="give the node more cpus, or lower the time scale's slow-down",
        )
    return max(_SMALLEST_QUOTA_US, round(share * period)), period


def burst(share: float) -> int:
    """Microseconds of unspent quota that a later period may use: a tick, or the whole quota where that is less.

    CPU time is taken tick by tick, so a busy core at a quota of nearly a whole one is charged 8 ms in one period of
    10 ms and 12 ms in the next, and loses what it has over in the first: at 1.0 cores 2-8 % as measured, with this
    0.2 %. And a node that may run again waits for the next tick where another one is running: beside others that kept
    80 % of the host busy that took 5 % of its time at 0.1 and 0.25 cores, with this nothing.
    """
    microseconds, _ = quota(share)
    return min(microseconds, round(TICK * 1e6))


def settings(hierarchies: Hierarchies, node: NodePlan) -> list[tuple[str, str, str]]:
    """What to write for a node: (controller, file, value), in the order in which the kernel takes it."""
    share = node.quota
    microseconds, period = quota(share)
    if hierarchies.is_v2("cpu"):
        cpu = [
            ("cpu", "cpu.max", f"{microseconds} {period}"),
            ("cpu", "cpu.weight", str(min(10_000, max(1, round(100 * share))))),
        ]
    else:
        cpu = [
            ("cpu", "cpu.cfs_period_us", str(period)),
            ("cpu", "cpu.cfs_quota_us", str(microseconds)),
            ("cpu", "cpu.shares", str(min(262_144, max(2, round(1024 * share))))),
        ]
    cpu.append(("cpu", _BURST[hierarchies.is_v2("cpu")], str(burst(share))))
    return [*cpu, *memory_settings(hierarchies, int(node.memory)), ("pids", "pids.max", str(node.pids))]


def memory_settings(hierarchies: Hierarchies, cap: int) -> list[tuple[str, str, str]]:
    """What to write for a memory cap with no swap on top of it."""
    if cap <= 0:
        return []
    rounded = str(cap // _PAGE * _PAGE)
    if hierarchies.is_v2("memory"):
        found = [("memory", "memory.max", rounded), ("memory", "memory.swap.max", "0")]
    else:
        found = [("memory", "memory.limit_in_bytes", rounded), ("memory", "memory.memsw.limit_in_bytes", rounded)]
    return found


def apply(hierarchies: Hierarchies, lab: LabId, node: NodePlan, card: Sequence[tuple[str, str, str]] = ()) -> None:
    """Make a node's groups, set its caps and those of its `card` (`storage.of_node`), and read each back.

    Raises RuntimeFailure when the kernel holds another value.
    """
    groups = NodeGroups.of(hierarchies, lab, node.name)
    for group in groups.all:
        group.mkdir()
    set_all(groups, node, card)


def set_all(groups: NodeGroups, node: NodePlan, card: Sequence[tuple[str, str, str]] = ()) -> None:
    """Set a node's caps in groups that are there, as `apply`."""
    for controller, file, value in (*settings(groups.hierarchies, node), *card):
        _set(groups, node.name, controller, file, value)


def lift(groups: NodeGroups) -> None:
    """Take the cap on CPU time off again, the burst first: the kernel takes no quota that is under it."""
    v2 = groups.hierarchies.is_v2("cpu")
    for file, value in ((_BURST[v2], "0"), ("cpu.max", "max") if v2 else ("cpu.cfs_quota_us", "-1")):
        if (path := groups.file("cpu", file)).exists():
            cgroups.write(path, value)


def weigh_lab(hierarchies: Hierarchies, lab: LabId, cores: float) -> None:
    """Let the lab's nodes go before the host's own programs, up to their caps: what was promised is kept.

    A group weighs as one process unless told otherwise: ten nodes together would get no more than one busy
    program outside. On version 2 the lab's helpers share its group, and must not wait for the nodes.
    """
    root = hierarchies.root("cpu")
    assert root is not None, "probe() passed a host without cpu"
    file, each, least, most = (
        ("cpu.weight", 100, 1, 10_000) if hierarchies.is_v2("cpu") else ("cpu.shares", 1024, 2, 262_144)
    )
    group = root / lab.cgroup
    cgroups.write(group / file, str(min(most, max(least, round(PRECEDENCE * each * cores)))))
    total = sum(int(cgroups.read(path)) for path in group.parent.glob(f"*/{file}"))
    cgroups.write(group.parent / file, str(min(most, max(each, total))))
    if hierarchies.is_v2("cpu"):
        helpers = group / CONTROL
        helpers.mkdir(exist_ok=True)
        cgroups.write(helpers / file, str(most))


def set_memory(groups: NodeGroups, node: str, cap: int) -> None:
    """Change a living node's memory cap. Version 1 wants memory+swap never under memory, so the order depends."""
    wanted = memory_settings(groups.hierarchies, cap)
    first = groups.file("memory", "memory.limit_in_bytes")
    if not groups.hierarchies.is_v2("memory") and cap > int(cgroups.read(first)):
        wanted.reverse()
    for controller, file, value in wanted:
        _set(groups, node, controller, file, value)


def _set(groups: NodeGroups, node: str, controller: str, file: str, value: str) -> None:
    path = groups.file(controller, file)
    if file in _OPTIONAL and not path.exists():
        return  # docs/limits.md says what that means
    try:
        cgroups.write(path, value)
        kept = cgroups.read(path).strip()
    except OSError as error:
        raise RuntimeFailure(
            f"the kernel refused the cap {file} = {value} ({os.strerror(error.errno or 0)})",
            where=node,
            fix="see `emu doctor`, or change the node's cpus or memory",
        ) from None
    if kept != value:
        raise RuntimeFailure(
            f"the kernel keeps {file} at {kept}, not {value}", where=node, fix="change the node's cpus or memory"
        )


def usage(groups: NodeGroups, *, running: bool, shared: int) -> Usage:
    """Read what a node has used; raises FileNotFoundError when its groups have gone."""
    hierarchies = groups.hierarchies

    def number(controller: str, file: str) -> int:
        return int(cgroups.read(groups.file(controller, file)))

    def table(controller: str, file: str) -> dict[str, int]:
        text = cgroups.read(groups.file(controller, file))
        return {key: int(value) for key, value in (line.split() for line in text.splitlines())}

    stat = table("cpu", "cpu.stat")
    cpu = cgroups.seconds(groups.file("cpuacct", hierarchies.cpu_time))
    if hierarchies.is_v2("memory"):
        memory = number("memory", "memory.current")
        has_peak = groups.file("memory", "memory.peak").exists()  # since Linux 5.19
        peak = number("memory", "memory.peak") if has_peak else memory
        oom = table("memory", "memory.events")["oom_kill"]
    else:
        memory = number("memory", "memory.usage_in_bytes")
        peak = number("memory", "memory.max_usage_in_bytes")
        oom = _oom_kills(groups.file("memory", "memory.oom_control"))
    throttled = stat["throttled_usec"] / 1e6 if hierarchies.is_v2("cpu") else stat["throttled_time"] / 1e9
    return Usage(
        cpu=Delay(cpu),
        throttled=Delay(throttled),
        periods=stat["nr_periods"],
        throttled_periods=stat["nr_throttled"],
        memory=Size(memory + shared),
        memory_peak=Size(max(peak, memory) + shared),
        shared=Size(shared),
        oom_kills=oom,
        pids=number("pids", "pids.current"),
        running=running,
    )


def _oom_kills(file: Path) -> int:
    """OOM kills in a group of version 1 and those below: it counts only what was in the group itself."""
    found = 0
    for group in cgroups.groups_below(file.parent):
        lines = (line.split() for line in cgroups.read(group / file.name).splitlines())
        found += sum(int(value) for key, value in lines if key == "oom_kill")
    return found
