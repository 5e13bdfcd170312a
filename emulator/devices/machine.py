"""What a machine's kernel tells of it: model, cores, clock, memory, caches, network port. For `emu devices measure`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from emulator.core.units import Size

_ROUTE = re.compile(r"^(\S+)\t00000000\t", re.MULTILINE)
_CACHES = {("1", "Data"): "l1d", ("1", "Instruction"): "l1i", ("2", "Unified"): "l2", ("3", "Unified"): "l3"}


def model(root: Path = Path("/")) -> str:
    """The board's name as its firmware tells it, else the processor's; "" where neither does."""
    board = _text(root / "proc/device-tree/model") or _text(root / "sys/devices/virtual/dmi/id/product_name")
    if board:
        return board
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return found[1].strip() if found else ""


def figures(root: Path = Path("/")) -> dict[str, tuple[float, str]]:
    """Value and where it was read, by a figure's name; what the kernel does not tell is left out."""
    found: dict[str, tuple[float, str]] = {"cores": (float(os.cpu_count() or 1), "online processors")}
    cpu = root / "sys/devices/system/cpu/cpu0"
    clock = _text(cpu / "cpufreq/cpuinfo_max_freq")
    if clock.isdigit():
        found["clock"] = (int(clock) * 1e3, "cpufreq/cpuinfo_max_freq")
    memory = re.search(r"^MemTotal:\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    if memory:
        found["memory"] = (int(memory[1]) * 1024.0, "MemTotal: without what firmware and GPU keep")
    for cache in sorted((cpu / "cache").glob("index*")):
        key = _CACHES.get((_text(cache / "level"), _text(cache / "type")))
        size = re.fullmatch(r"(\d+)([KM])", _text(cache / "size"))
        if key and size:
            found[key] = (float(Size.parse(f"{size[1]} {size[2]}iB")), f"cpu0/cache/{cache.name}")
    return found


def interface(root: Path = Path("/")) -> str:
    """The interface of the default route; "" where there is none."""
    found = _ROUTE.search(_text(root / "proc/net/route"))
    return found[1] if found else ""


def line_rate(name: str, root: Path = Path("/")) -> float | None:
    """Bits a second that the interface's line was agreed at; None where its driver does not tell (Wi-Fi, virtual)."""
    speed = _text(root / "sys/class/net" / name / "speed")
    return float(speed) * 1e6 if speed.isdigit() and int(speed) > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""
