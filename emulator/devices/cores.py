"""Which cores this host has, where they are ARM: so that a device's programs may be held against the device's own."""

from __future__ import annotations

import re
from pathlib import Path

#: (implementer, part) of the MIDR register, as the kernel shows them, in QEMU's names
_NAMES = {
    ("0x41", "0xd03"): "cortex-a53",
    ("0x41", "0xd04"): "cortex-a35",
    ("0x41", "0xd05"): "cortex-a55",
    ("0x41", "0xd07"): "cortex-a57",
    ("0x41", "0xd08"): "cortex-a72",
    ("0x41", "0xd0b"): "cortex-a76",
    ("0x41", "0xd0c"): "neoverse-n1",
}
_LINE = re.compile(r"^CPU (implementer|part)\s*:\s*(0x[0-9a-f]+)$", re.MULTILINE)


def of_host(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """The kinds of core, each once, as QEMU names them or by their numbers; empty where this host is not ARM."""
    found: list[str] = []
    implementer = ""
    for key, number in _LINE.findall(cpuinfo.read_text()):
        if key == "implementer":
            implementer = number
            continue
        name = _NAMES.get((implementer, number), f"an ARM core {implementer}/{number}")
        if name not in found:
            found.append(name)
    return tuple(found)
