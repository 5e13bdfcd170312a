"""Model states on their way to the evaluator: one file each, numpy's own format, no pickle, renamed when whole.

A node cannot see the controller's directories, so writers and readers go by a directory's descriptor, opened
before the node was entered. File = the fields as JSON in an array of bytes, then the parameters, array by array.
One to be kept becomes parameters.npz beside that directory once it has been evaluated.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

    Array = np.ndarray[Any, Any]

SUFFIX = ".snapshot"
#: a kept model state: one fp32 array for each variable, by its name
KEPT = "parameters.npz"


def write(
    directory: int, number: int, parameters: Sequence[Array], fields: dict[str, Any], *, keep: bool = False
) -> None:
    """Write snapshot `number` into the open directory; raises ResultError if it cannot be stored."""
    import numpy as np

    name = f"{number:06d}{SUFFIX}"
    head = json.dumps({"arrays": len(parameters), "fields": fields, "keep": keep}, allow_nan=False).encode()
    try:
        descriptor = os.open(f"{name}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=directory)
        with open(descriptor, "wb") as file:
            np.save(file, np.frombuffer(head, np.uint8), allow_pickle=False)
            for array in parameters:
                np.save(file, np.asarray(array), allow_pickle=False)
        os.rename(f"{name}.part", name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        raise ResultError(
            f"snapshot {number} cannot be written ({error.strerror})", fix="free space where the runs are kept"
        ) from None


def read(directory: int, name: str) -> tuple[list[Array], dict[str, Any], bool]:
    """The parameters and fields of a snapshot, and whether it is to be kept."""
    import numpy as np

    with open(os.open(name, os.O_RDONLY, dir_fd=directory), "rb") as file:
        head = json.loads(np.load(file, allow_pickle=False).tobytes())
        return [np.load(file, allow_pickle=False) for _ in range(head["arrays"])], head["fields"], head["keep"]


def waiting(directory: int) -> list[str]:
    """The names of the whole snapshots in the directory, oldest first."""
    return sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))


def keep(path: Path, names: Sequence[str], parameters: Sequence[Array]) -> None:
    """Write a model state for good, whole or not at all; raises ResultError if it cannot be stored."""
    import numpy as np

    part = path.with_name(f"{path.name}.part")
    named: dict[str, Any] = {name: np.asarray(array, np.float32) for name, array in zip(names, parameters, strict=True)}
    try:
        with part.open("wb") as file:
            np.savez(file, **named)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ResultError(
            f"the parameters cannot be written ({error.strerror})",
            where=str(path),
            fix="free space where runs are kept",
        ) from None


def remove(directory: int, name: str) -> None:
    """Delete a snapshot that has been evaluated."""
    os.unlink(name, dir_fd=directory)
