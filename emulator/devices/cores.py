"""ARM cores by name: which this host has, and what Linux shows of a device's."""

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
#: what Linux shows of the boards' own cores (Raspberry Pi OS, 64 bits; L4T for the A57)
_FEATURES = {
    "cortex-a53": "fp asimd evtstrm crc32 cpuid",
    "cortex-a57": "fp asimd evtstrm aes pmull sha1 sha2 crc32",
    "cortex-a72": "fp asimd evtstrm crc32 cpuid",
    "cortex-a76": "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
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


def cpuinfo(core: str, count: int, board: str) -> str:
    """/proc/cpuinfo of a board with so many of these cores (in QEMU's name); empty for a core that is not known."""
    ids = next((ids for ids, name in _NAMES.items() if name == core), None)
    if ids is None or core not in _FEATURES:
        return ""
    implementer, part = ids
    blocks = [
        f"processor\t: {number}\nFeatures\t: {_FEATURES[core]}\nCPU implementer\t: {implementer}\n"
        f"CPU architecture: 8\nCPU part\t: {part}\n"
        for number in range(count)
    ]
    return "\n".join([*blocks, f"Model\t\t: {board}\n"])
