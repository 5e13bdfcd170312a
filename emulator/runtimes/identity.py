"""What a node's programs are shown when they ask for their machine: processors and memory, in the kernel's own formats.

Files over /proc and /sys, since that is what programs size themselves by. The instruction set is told as it is: on an
x86 host a node's /proc/cpuinfo keeps the host's vendor and flags, for programs choose their code by them.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.processor import host_arch
from emulator.devices import cores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.core.plan import NodePlan

#: where the numbers of processors are asked for: by glibc (get_nprocs), by cpuinfo libraries, by lscpu
PROCESSOR_LISTS = tuple(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present"))
CPUINFO, MEMINFO, STAT = "/proc/cpuinfo", "/proc/meminfo", "/proc/stat"
_KIB = 1024
#: ticks a second in /proc/stat, whatever the kernel's own (USER_HZ)
_HERTZ = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Machine:
    """The files that nodes of one kind share: `processors` as a list of the kernel's ("0-3"), and `cpuinfo`."""

    processors: str
    cpuinfo: str

    def files(self) -> Mapping[str, str]:
        """What each of them holds, by its path in a node."""
        return {CPUINFO: self.cpuinfo, **dict.fromkeys(PROCESSOR_LISTS, f"{self.processors}\n")}


def processors(node: NodePlan) -> int:
    """How many processors a node shows: one for each core of the device that it has, or begins to have; 0 = no cap."""
    return math.ceil(round(float(node.cpus), 9))


def machine(node: NodePlan, cpuinfo: str | None = None) -> Machine | None:
    """The files of a node; None where it is no device, so that it is this host. `cpuinfo` is the host's own."""
    count = processors(node)
    if not count or not node.machine:
        return None
    text = Path(CPUINFO).read_text() if cpuinfo is None else cpuinfo
    foreign = node.arch not in ("", host_arch())
    told = cores.cpuinfo(node.cpu_model, count, node.machine) if foreign else _native(text, node, count)
    return Machine("0" if count == 1 else f"0-{count - 1}", told or text)


def _native(host: str, node: NodePlan, count: int) -> str:
    """The host's first processor, `count` times over, under the device's name and clock."""
    block = host.partition("\n\n")[0]
    name = re.search(r"^model name\s*:\s*(.+)$", block, re.MULTILINE)
    title = f"{node.machine} (emulated by emu on {name[1] if name else os.uname().machine})"
    texts = []
    for number in range(count):
        values = {"processor": number, "model name": title, "physical id": 0, "siblings": count, "core id": number,
                  "cpu cores": count, "apicid": number, "initial apicid": number}  # fmt: skip
        if node.clock:
            values["cpu MHz"] = f"{node.clock / 1e6:.3f}"
        text = block
        for key, value in values.items():
            text = re.sub(rf"^({key}\s*:).*$", lambda found, value=value: f"{found[1]} {value}", text, flags=re.M)  # type: ignore[misc]
        texts.append(text + "\n")
    board = "" if name else f"Model\t\t: {title}\n"  # ARM kernels name the board once, after all processors
    return "\n".join([*texts, board]) if board else "\n".join(texts) + "\n"


def affinities(nodes: Sequence[NodePlan], host: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Which of the host's processors each node may use, where its device has fewer than the host.

    The busiest nodes choose first, each the processors that are promised least so far: so no processor is promised
    more than there is while another is free.
    """
    promised = dict.fromkeys(host, 0.0)
    found = {}
    for node in sorted(nodes, key=lambda node: -float(node.host_cpus)):
        count = processors(node)
        if 0 < count < len(host):
            chosen = sorted(host, key=lambda processor: promised[processor])[:count]
            found[node.name] = tuple(sorted(chosen))
        else:
            chosen = list(host)
        for processor in chosen:
            promised[processor] += float(node.host_cpus) / len(chosen)
    return found


def meminfo(cap: int, used: int = 0, cache: int = 0, shmem: int = 0) -> str:
    """/proc/meminfo for a memory cap; all in bytes. `cache` is the part of `used` that the kernel can give back."""
    free = max(cap - used, 0)
    lines = {
        "MemTotal": cap, "MemFree": free, "MemAvailable": min(free + cache, cap), "Buffers": 0, "Cached": cache + shmem,
        "SwapCached": 0, "Active": max(used - cache, 0), "Inactive": cache, "SwapTotal": 0, "SwapFree": 0, "Dirty": 0,
        "Writeback": 0, "AnonPages": max(used - cache - shmem, 0), "Mapped": 0, "Shmem": shmem, "Slab": 0,
        "SReclaimable": 0, "SUnreclaim": 0,
    }  # fmt: skip
    return "".join(f"{key + ':':<16}{value // _KIB:>8} kB\n" for key, value in lines.items())


def stat(count: int, busy: float, up: float, boot: int) -> str:
    """/proc/stat of `count` processors that were busy for `busy` seconds in all, of `up` seconds since `boot` (epoch).

    Which of them was busy is not known: each shows the same part. Numbers have a fixed width, so that a file which is
    written over never holds the rest of an older one.
    """
    each = min(busy / count, up)
    rest = " ".join("0" for _ in range(6))

    def line(name: str, times: int) -> str:
        used, idle = int(each * _HERTZ) * times, int((up - each) * _HERTZ) * times
        return f"{name:<5} {used:>12} 0 0 {idle:>12} {rest}\n"

    lines = [line("cpu", count), *(line(f"cpu{number}", 1) for number in range(count))]
    return "".join(lines) + f"intr 0\nctxt 0\nbtime {boot}\nprocesses 0\nprocs_running 1\nprocs_blocked 0\n"
