"""What an ELF file is: for which processor, a program or a library, and whether it needs others."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {3: "i386", 40: "arm (32 bit)", 62: "amd64", 183: "arm64", 243: "riscv64"}
_DYNAMIC, _INTERPRETER = 3, 3


@dataclass(frozen=True)
class Elf:
    """`loader` is the program that loads a dynamic program's libraries; empty for a static one and for a library."""

    machine: str
    library: bool
    loader: str = ""


def read(path: Path) -> Elf | None:
    """The file's kind; None where it is no (whole) ELF file. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(64)
        if start[:4] != b"\x7fELF" or len(start) < 64:
            return None
        order = "<" if start[5] == 1 else ">"
        kind, number = struct.unpack_from(f"{order}HH", start, 16)
        machine = _MACHINES.get(number, f"processor {number}")
        if start[4] != 2:  # 32 bits: another processor than those asked for, whatever else it is
            return Elf(machine, library=False)
        offset, size, count = *struct.unpack_from(f"{order}Q", start, 32), *struct.unpack_from(f"{order}HH", start, 54)
        whole = path.stat().st_size
        try:
            file.seek(offset)
            table = file.read(size * count)
            for index in range(count):
                what, _, at, _, _, length = struct.unpack_from(f"{order}IIQQQQ", table, index * size)
                if at + length > whole:
                    return None
                if what == _INTERPRETER:
                    file.seek(at)
                    return Elf(machine, library=False, loader=file.read(min(length, 4096)).rstrip(b"\0").decode())
        except (struct.error, ValueError, OverflowError):
            return None
    return Elf(machine, library=kind == _DYNAMIC and ".so" in path.name)
