"""How much may wait for a line: as the file says it, and the rule where it says nothing."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from emulator.core.units import Delay, Rate, Size

#: The default queue is the largest of: one bandwidth-delay product of the longest round trip that uses the link
#: (a single TCP flow then fills the line: after a loss CUBIC goes on at 0.7 of line + queue), 5 ms of the rate
#: (the bursts of segmentation offload), and 64 KiB (ten full packets of an initial window, four times over).
FLOOR = Size(64 * 1024)
BURST = Delay(0.005)
#: of a direction without a rate, where nothing ever waits
UNLIMITED = Size(16 * 2**20)
_PACKETS = re.compile(r"^\s*(\d{1,9})\s*(packets?|pkts?)\s*$")
EXAMPLE = "'256 KiB', '100 packets' or '50 ms'"


@dataclass(frozen=True)
class Queue:
    """A queue's length as written: bytes, packets of the link's MTU, or seconds of its rate."""

    amount: float
    unit: Literal["bytes", "packets", "seconds"]

    @classmethod
    def parse(cls, value: object) -> Queue:
        """Read "256 KiB", "100 packets" or "50 ms"; raises ValueError with the accepted forms."""
        if isinstance(value, Queue):
            return value
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a queue; write it like {EXAMPLE}")
        packets = _PACKETS.match(value)
        if packets:
            return cls._positive(float(packets[1]), "packets", value)
        for kind, unit in ((Size, "bytes"), (Delay, "seconds")):
            try:
                amount = float(kind.parse(value))
            except ValueError:
                continue
            return cls._positive(amount, "bytes" if unit == "bytes" else "seconds", value)
        raise ValueError(f"{value!r} is not a queue; write it like {EXAMPLE}")

    @classmethod
    def _positive(cls, amount: float, unit: Literal["bytes", "packets", "seconds"], text: str) -> Queue:
        if amount <= 0:
            raise ValueError(f"a queue cannot be {text!r}; it must hold at least one packet")
        return cls(amount, unit)

    def size(self, rate: Rate | None, mtu: int) -> Size:
        """Its bytes, at least one full packet; raises ValueError for a time without a rate."""
        if self.unit == "packets":
            return Size(self.amount * mtu)
        if self.unit == "bytes":
            return Size(max(self.amount, mtu))
        if rate is None:
            raise ValueError("a queue in time needs a rate; give a rate, or the queue in bytes")
        return Size(max(math.ceil(self.amount * rate / 8), mtu))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        return {"type": "string", "description": f"a queue, like {EXAMPLE}"}


def default(rate: Rate | None, longest_round_trip: Delay) -> Size:
    """The default queue of a direction, in bytes; the rule stands at the top of this file."""
    if rate is None:
        return UNLIMITED
    return Size(max(FLOOR, math.ceil(rate / 8 * max(longest_round_trip, BURST))))
