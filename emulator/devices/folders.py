"""Where profiles lie: those that ship, those in ./devices, and those in the folders that EMU_DEVICES lists."""

from __future__ import annotations

import os
import re
from pathlib import Path

from emulator.core.errors import DeviceError

SHIPPED = Path(__file__).parent / "profiles"
VARIABLE = "EMU_DEVICES"
NAME = re.compile(r"^[a-z0-9][a-z0-9.-]{0,39}$")


def folders() -> tuple[Path, ...]:
    """All folders of profiles, the shipped one first; raises DeviceError where EMU_DEVICES lists something else."""
    own = [Path("devices")] if Path("devices").is_dir() else []
    for text in os.environ.get(VARIABLE, "").split(os.pathsep):
        if not text:
            continue
        path = Path(text)
        if not path.is_dir():
            raise DeviceError(
                "this is no folder", where=f"{VARIABLE}: {text}", fix=f"mend {VARIABLE}, a list of folders of profiles"
            )
        own.append(path)
    found: dict[Path, None] = dict.fromkeys([SHIPPED, *(path.resolve() for path in own)])
    return tuple(found)


def names() -> list[str]:
    """The names of all profiles, in order of the alphabet."""
    found = {path.stem for folder in folders() for path in folder.glob("*.yaml")}
    return sorted(name for name in found if NAME.match(name))


def find(name: str) -> Path | None:
    """The file of that profile; None = there is none. Raises DeviceError for a name that two files have."""
    if not NAME.match(name):
        return None
    found = [path for folder in folders() if (path := folder / f"{name}.yaml").is_file()]
    if len(found) > 1:
        what = "ships with emu" if found[0].parent == SHIPPED else f"is in {found[0].parent} as well"
        raise DeviceError(
            f"a device {name!r} {what}", where=str(found[1]), fix="rename this file, so that one name means one device"
        )
    return found[0] if found else None
