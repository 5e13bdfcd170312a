"""What parameter server and worker say to each other.

worker -> server   pull   {pull}                        the worker's number for this pull, echoed in the answer
server -> worker   model  {pull, iteration, push_received}  + the flat parameters
worker -> server   push   {iteration}                   + the arrays of the exchange
server -> worker   refused {reason}                     the push was not applied; pull afresh
server -> worker   stop   {}                            the budget is over
"""

from __future__ import annotations

import math

from emulator.training.message import Message, encode
from emulator.training.message import message_bytes as _bytes_of_frames

PULL, MODEL, PUSH, REFUSED, STOP = "pull", "model", "push", "refused", "stop"


def message_bytes(message: Message) -> int:
    """All that the transport is handed for a message."""
    return _bytes_of_frames(encode(message))


def number(message: Message, name: str) -> int:
    """A whole-number field, -1 if the sender did not give one."""
    value = message.fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def finite(value: float) -> float | None:
    """A number for a record, which cannot hold infinity or NaN (a run that diverged)."""
    return value if math.isfinite(value) else None
