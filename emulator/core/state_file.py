"""Files under a lab's state directory are written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path


def replace_state(path: Path, text: str) -> None:
    """Put `text` in the place of the file, making its directory where needed; raises HostError."""
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text)
        fresh.replace(path)
    except OSError as error:
        raise HostError(
            f"the lab's state cannot be written ({error.strerror})",
            where=str(path),
            fix="free space on that file system, or set EMU_STATE_DIR",
        ) from None
