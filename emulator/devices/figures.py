"""The figures that a profile may hold: their names, units and meanings, and what one figure is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from emulator.core.units import Quantity, Rate, Size
from emulator.devices.units import Count, Flops, Frequency, Mips, Throughput, Watts

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(NamedTuple):
    """What a figure is: its quantity, its base unit, and what it means for people."""

    quantity: type[Quantity]
    unit: str
    meaning: str


#: every figure, in the order in which they are shown; a value is in its base unit
KINDS: Mapping[str, Kind] = {
    "cores": Kind(Count, "cores", "cores"),
    "clock": Kind(Frequency, "Hz", "clock"),
    "memory": Kind(Size, "B", "memory"),
    "l1d": Kind(Size, "B", "L1 data cache, a core"),
    "l1i": Kind(Size, "B", "L1 instruction cache, a core"),
    "l2": Kind(Size, "B", "L2 cache"),
    "l3": Kind(Size, "B", "L3 cache"),
    "hpl": Kind(Flops, "FLOP/s", "HPL (LINPACK), double, all cores"),
    "sgemm": Kind(Flops, "FLOP/s", "matrix product, single, all cores"),
    "stream_copy": Kind(Throughput, "B/s", "STREAM copy, all cores"),
    "stream_scale": Kind(Throughput, "B/s", "STREAM scale, all cores"),
    "stream_add": Kind(Throughput, "B/s", "STREAM add, all cores"),
    "stream_triad": Kind(Throughput, "B/s", "STREAM triad, all cores"),
    "memcpy": Kind(Throughput, "B/s", "memcpy, bytes copied"),
    "sevenzip_one": Kind(Mips, "MIPS", "7-zip, one core"),
    "sevenzip_all": Kind(Mips, "MIPS", "7-zip, all cores"),
    "nic": Kind(Rate, "bit/s", "network line, each way"),
    "nic_tcp": Kind(Rate, "bit/s", "network, what TCP carries"),
    "storage_read": Kind(Throughput, "B/s", "storage, sequential read"),
    "storage_write": Kind(Throughput, "B/s", "storage, sequential write"),
    "storage_read_4k": Kind(Throughput, "B/s", "storage, random 4 KiB reads"),
    "storage_write_4k": Kind(Throughput, "B/s", "storage, random 4 KiB writes"),
    "idle": Kind(Watts, "W", "power, idle"),
    "loaded": Kind(Watts, "W", "power, all cores busy"),
    "hpl_power": Kind(Watts, "W", "power, under HPL"),
}


@dataclass(frozen=True)
class Figure:
    """One measurement: `value` in the base unit of its kind, `source` where it stands, `derived` how it was made of
    what stands there (empty = as it stands), `conditions` under which it holds (precision, threads, BLAS, clock)."""

    value: float
    unit: str
    source: str
    derived: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingFigure:
    """Seconds that one training step (forward, backward, update) of `batch` images of `image` x `image` takes."""

    model: str
    batch: int
    image: int
    seconds: float
    source: str
    derived: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def images_per_second(self) -> float:
        """Images trained on in a second."""
        return self.batch / self.seconds


@dataclass(frozen=True)
class ThermalStep:
    """Above `above` degrees Celsius the cores run at `clock` Hz; None = that half is not known."""

    above: float | None
    clock: float | None
    source: str
    derived: str = ""


def text(key: str, value: float) -> str:
    """A figure's value as people read it: "11.9 GFLOPS", "4 GiB", "1.5 GHz"."""
    quantity = KINDS[key].quantity
    if quantity is Size and value >= 2**30 and value % 2**20 == 0:
        return f"{value / 2**30:g} GiB"
    factors = [(unit, factor) for unit, factor in quantity.shown if value >= factor] or [quantity.shown[-1]]
    unit, factor = factors[0]
    return f"{value / factor:.5g}" + ("" if quantity is Count else f" {unit}")


def seconds(value: float) -> str:
    """A duration as people read it."""
    factor, unit = (1.0, "s") if value >= 1 else (1e-3, "ms")
    return f"{value / factor:.4g} {unit}"
