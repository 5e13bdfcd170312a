"""Units of a device's figures, beside those of `core.units`: clock, computing, memory and storage speed, watts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from emulator.core.units import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping


class Frequency(Quantity):
    """Hertz."""

    __slots__ = ()
    noun, example = "clock", "1.5 GHz"
    units: ClassVar[Mapping[str, float]] = {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
    shown = (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1))


class Flops(Quantity):
    """Floating-point operations a second."""

    __slots__ = ()
    noun, example = "computing speed", "11.9 GFLOPS"
    units: ClassVar[Mapping[str, float]] = {
        prefix + unit: factor
        for prefix, factor in {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}.items()
        for unit in ("flops", "flop/s")
    }
    shown = (("TFLOPS", 1e12), ("GFLOPS", 1e9), ("MFLOPS", 1e6), ("FLOPS", 1))


class Throughput(Quantity):
    """Bytes a second; kB, MB, GB are powers of 1000, as benchmarks print them."""

    __slots__ = ()
    noun, example = "number of bytes a second", "5.5 GB/s"
    units: ClassVar[Mapping[str, float]] = {
        "b/s": 1, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9,
        "kib/s": 2.0**10, "mib/s": 2.0**20, "gib/s": 2.0**30,
    }  # fmt: skip
    shown = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1))


class Mips(Quantity):
    """Millions of instructions a second, as 7-zip's benchmark rates a machine."""

    __slots__ = ()
    noun, example = "7-zip rating", "1606 MIPS"
    units: ClassVar[Mapping[str, float]] = {"mips": 1}
    shown = (("MIPS", 1),)


class Watts(Quantity):
    """Electrical power."""

    __slots__ = ()
    noun, example = "power", "3.1 W"
    units: ClassVar[Mapping[str, float]] = {"w": 1, "mw": 1e-3}
    shown = (("W", 1),)


class Count(Quantity):
    """Whole things."""

    __slots__ = ()
    noun, example, bare = "number", "4", "x"
    units: ClassVar[Mapping[str, float]] = {"x": 1}
    shown = (("x", 1),)

    def __str__(self) -> str:
        return f"{float(self):g}"


class Celsius(Quantity):
    """Temperature."""

    __slots__ = ()
    noun, example = "temperature", "80 C"
    units: ClassVar[Mapping[str, float]] = {"c": 1, "°c": 1}
    shown = (("C", 1),)
