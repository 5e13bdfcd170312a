"""Messages between roles: a msgpack header and raw array buffers, never pickle.

Frames = [header, buffer, buffer, ...]. Payload bytes are the arrays' alone, message bytes all the frames'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from emulator.core.errors import TrainingError

VERSION = 1
_DTYPES = frozenset({"<f4", "<f8", "<f2", "<i4", "<i8", "<u4", "|u1", "|i1", "<u2", "<i2", "|b1"})


@dataclass(frozen=True)
class Message:
    """`kind` says what it is, `fields` are plain values, `arrays` the payload (C-contiguous numpy arrays)."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    arrays: tuple[np.ndarray[Any, Any], ...] = ()
    #: filled in on receipt
    sender: str = ""

    @property
    def payload_bytes(self) -> int:
        """Bytes of the raw arrays, as the papers count them."""
        return sum(array.nbytes for array in self.arrays)


def encode(message: Message) -> list[bytes | memoryview]:
    """The frames of a message; arrays are not copied where they are contiguous."""
    arrays = [np.ascontiguousarray(array) for array in message.arrays]
    header = msgpack.packb(
        [VERSION, message.kind, message.fields, [[array.dtype.str, list(array.shape)] for array in arrays]]
    )
    return [header, *(array.data.cast("B") if array.size else b"" for array in arrays)]


def message_bytes(frames: list[bytes | memoryview]) -> int:
    """All that is handed to the transport for these frames."""
    return sum(len(frame) for frame in frames)


def decode(frames: list[Any], sender: str = "") -> Message:
    """Read frames back; raises TrainingError for anything that is not a whole message of this version."""
    try:
        version, kind, fields, shapes = msgpack.unpackb(frames[0])
        if version != VERSION:
            raise ValueError(f"message version {version!r}")
        if len(shapes) != len(frames) - 1:
            raise ValueError(f"{len(shapes)} arrays announced, {len(frames) - 1} sent")
        arrays = []
        for (dtype, shape), buffer in zip(shapes, frames[1:], strict=True):
            if dtype not in _DTYPES:
                raise ValueError(f"array of type {dtype!r}")
            arrays.append(np.frombuffer(buffer, dtype=dtype).reshape(shape))
        if not isinstance(kind, str) or not isinstance(fields, dict):
            raise ValueError("header of another form")
    except (ValueError, TypeError, IndexError, KeyError, msgpack.exceptions.UnpackException) as error:
        raise TrainingError(
            f"a message from {sender or 'a peer'} cannot be read ({error})",
            fix="run the same emu version on all nodes",
        ) from None
    return Message(kind, fields, tuple(arrays), sender)
