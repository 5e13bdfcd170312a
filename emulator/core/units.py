"""Quantities with their units: `Rate` (bit/s), `Delay` (s), `Size` (bytes), `Share` (of one core, or of all packets).

Each is a `float` in its base unit, so that arithmetic stays plain, made by `parse` from what people write
("20 Mbit", "35 ms", "4 GiB", "1 %"). `str` gives a text that parses back to the same value.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

Q = TypeVar("Q", bound="Quantity")

_TEXT = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*$")


class Quantity(float):
    """A non-negative number in a base unit, read from and written as text with a unit."""

    __slots__ = ()

    noun: ClassVar[str]
    #: lower-case unit -> factor to the base unit
    units: ClassVar[Mapping[str, float]]
    #: units that `str` may choose, largest first
    shown: ClassVar[tuple[tuple[str, float], ...]]
    #: unit that a bare number has; None = a bare number is refused
    bare: ClassVar[str | None] = None
    example: ClassVar[str]
    maximum: ClassVar[float] = math.inf

    @classmethod
    def parse(cls: type[Q], value: object) -> Q:
        """Read a quantity; raises ValueError with the accepted form for anything else."""
        if isinstance(value, cls):
            return value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(f"{value!r} is not a {cls.noun}; write it like {cls.example!r}")
        match = _TEXT.match(str(value))
        if match is None:
            raise ValueError(f"{value!r} is not a {cls.noun}; write it like {cls.example!r}")
        number, unit = float(match[1]), match[2]
        if unit is None:
            if cls.bare is None and number != 0:
                raise ValueError(f"{value!r} has no unit; write a {cls.noun} like {cls.example!r}")
            unit = cls.bare or cls.shown[-1][0]
        factor = cls.units.get(unit.lower())
        if factor is None:
            known = ", ".join(dict.fromkeys(name for name, _ in cls.shown))
            raise ValueError(f"{unit!r} is not a unit of a {cls.noun}; use one of {known}, like {cls.example!r}")
        result = number * factor
        if not math.isfinite(result) or result < 0:
            raise ValueError(f"a {cls.noun} cannot be {value!r}; it must be finite and not negative")
        if result > cls.maximum:
            raise ValueError(f"a {cls.noun} cannot be {value!r}; at most {cls(cls.maximum)}")
        return cls(result)

    def __str__(self) -> str:
        number = float(self)
        for unit, factor in self.shown:
            if number >= factor or factor == self.shown[-1][1]:
                text = f"{number / factor:.6g} {unit}"
                if float(type(self).parse(text)) == number:
                    return text
                return (
                    f"{number / factor!r} {unit}" if number / factor * factor == number else f"{number!r} {self._base}"
                )
        raise AssertionError("unreachable: the last unit always fits")

    @property
    def _base(self) -> str:
        return next(name for name, factor in self.shown if factor == 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls.parse, serialization=core_schema.to_string_ser_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        kinds = ["string"] if cls.bare is None else ["string", "number"]
        return {"type": kinds if len(kinds) > 1 else kinds[0], "description": f"a {cls.noun}, like {cls.example!r}"}


def _with_suffixes(table: dict[str, float], *suffixes: str) -> dict[str, float]:
    return {name.lower() + suffix: factor for name, factor in table.items() for suffix in ("", *suffixes)}


class Rate(Quantity):
    """Bits per second; prefixes are decimal, as on every line card."""

    __slots__ = ()
    noun, example = "rate", "20 Mbit"
    units = _with_suffixes({"bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}, "/s", "ps") | {
        "bps": 1,
        "kbps": 1e3,
        "mbps": 1e6,
        "gbps": 1e9,
    }
    shown = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1))


class Delay(Quantity):
    """Seconds."""

    __slots__ = ()
    noun, example = "delay", "35 ms"
    units: ClassVar[Mapping[str, float]] = {
        "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0
    }  # fmt: skip
    shown = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


class Size(Quantity):
    """Bytes; KiB, MiB, GiB are powers of 1024, kB, MB, GB powers of 1000."""

    __slots__ = ()
    noun, example = "size", "4 GiB"
    units: ClassVar[Mapping[str, float]] = {
        "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
        "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
    }  # fmt: skip
    shown = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1))


class Share(Quantity):
    """A fraction: of a core ("0.5", "50 %", "2.5" cores), or of packets ("1 %")."""

    __slots__ = ()
    noun, example, bare = "share", "1 %", "x"
    units: ClassVar[Mapping[str, float]] = {"x": 1.0, "%": 0.01}
    shown = (("x", 1.0),)

    def __str__(self) -> str:
        return f"{float(self)!r}"


class Cores(Share):
    """Cores, as a topology file writes them: a share whose errors speak of cores."""

    __slots__ = ()
    noun, example = "number of cores", "0.5"
