"""How much may wait for a line: as the file says it, and the rule where it says nothing."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from emulator.core.plan import CoDel
from emulator.core.units import Delay, Rate, Size

#: The default queue is the largest of: one bandwidth-delay product of the longest round trip that uses the link
#: (a single TCP flow then fills the line: after a loss CUBIC goes on at 0.7 of line + queue), 5 ms of the rate
#: (the bursts of segmentation offload), and 64 KiB (ten full packets of an initial window, four times over).
FLOOR = Size(64 * 1024)
BURST = Delay(0.005)
#: of a direction without a rate, where nothing ever waits
UNLIMITED = Size(16 * 2**20)
_PACKETS = re.compile(r"^\s*(\d{1,9})\s*(packets?|pkts?)\s*$")
EXAMPLE = "'256 KiB', '100 packets', '50 ms' or {limit: 256 KiB, aqm: codel}"
_KEYS = ("limit", "aqm", "target", "interval")


@dataclass(frozen=True)
class Queue:
    """A queue as written: its length in bytes, packets, or seconds of its rate (0 = the default's), and its manager."""

    amount: float
    unit: Literal["bytes", "packets", "seconds"]
    codel: CoDel | None = None

    @classmethod
    def parse(cls, value: object) -> Queue:
        """Read "256 KiB", "100 packets" or "50 ms"; raises ValueError with the accepted forms."""
        if isinstance(value, Queue):
            return value
        if isinstance(value, dict):
            return cls._managed(value)
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
    def _managed(cls, value: dict[Any, Any]) -> Queue:
        unknown = [key for key in value if key not in _KEYS]
        if unknown:
            raise ValueError(f"a queue has no {unknown[0]!r}; use {', '.join(_KEYS)}")
        length = cls.parse(value["limit"]) if "limit" in value else cls(0.0, "bytes")
        if "aqm" not in value:
            if "target" in value or "interval" in value:
                raise ValueError("`target` and `interval` are CoDel's; add `aqm: codel`")
            return length
        if value["aqm"] != "codel":
            raise ValueError(f"a queue cannot be managed by {value['aqm']!r}; use codel")
        default = CoDel()
        target, interval = (
            Delay.parse(value.get(name, known))
            for name, known in (("target", default.target), ("interval", default.interval))
        )
        if not 0 < target < interval:
            raise ValueError(
                f"CoDel's target ({target}) must be above 0 and below its interval ({interval}); change one"
            )
        return replace(length, codel=CoDel(target, interval))

    @classmethod
    def _positive(cls, amount: float, unit: Literal["bytes", "packets", "seconds"], text: str) -> Queue:
        if amount <= 0:
            raise ValueError(f"a queue cannot be {text!r}; it must hold at least one packet")
        return cls(amount, unit)

    @property
    def packets(self) -> int | None:
        """How many packets it holds, where that is how it is counted."""
        return int(self.amount) if self.unit == "packets" else None

    def size(self, rate: Rate | None, mtu: int) -> Size:
        """Its bytes, at least one packet of `mtu`; raises ValueError for a time without a rate."""
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
        return {"type": ["string", "object"], "description": f"a queue, like {EXAMPLE}"}


def default(rate: Rate | None, longest_round_trip: Delay) -> Size:
    """The default queue of a direction, in bytes; the rule stands at the top of this file."""
    if rate is None:
        return UNLIMITED
    return Size(max(FLOOR, math.ceil(rate / 8 * max(longest_round_trip, BURST))))
