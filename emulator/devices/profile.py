"""Device profiles: what a machine has and how fast it computes, each figure with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from emulator.core.errors import TopologyError
from emulator.core.units import Size

DIRECTORY = Path(__file__).parent / "profiles"
#: the device of a node that names none
UNLIMITED = "server"


@dataclass(frozen=True)
class Figure:
    """A value, where it stands in public, and how it was derived where it stands nowhere."""

    value: float
    source: str
    derived: str = ""


@dataclass(frozen=True)
class DeviceProfile:
    """One device. A figure that is None is not known (or, for `server`, is the host's).

    `sgemm_gflops` is single-precision matrix multiplication on all cores, in GFLOPS; `memory` is in bytes; `cpu_model`
    is the core as QEMU names it.
    """

    name: str
    title: str
    cores: Figure | None = None
    memory: Figure | None = None
    sgemm_gflops: Figure | None = None
    cpu_model: str = ""

    @property
    def core_gflops(self) -> float | None:
        """GFLOPS of one core; None = worth one core of the host."""
        if self.sgemm_gflops is None or self.cores is None:
            return None
        return self.sgemm_gflops.value / self.cores.value


def names() -> list[str]:
    """All devices that ship, in order of the alphabet."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


@cache
def profile(name: str) -> DeviceProfile:
    """The profile of that name; raises TopologyError with the nearest name."""
    path = DIRECTORY / f"{name}.yaml"
    if name not in names():
        import difflib

        near = difflib.get_close_matches(name, names(), 1)
        fix = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names())}"
        raise TopologyError(f"there is no device {name!r}", fix=fix)
    from ruamel.yaml import YAML

    raw: dict[str, Any] = YAML(typ="safe", pure=True).load(path)
    title, cpu_model = raw.pop("title"), raw.pop("cpu_model", "")
    figures: dict[str, Any] = {key: _figure(value) for key, value in raw.items()}
    return DeviceProfile(name, title, cpu_model=cpu_model, **figures)


def _figure(raw: dict[str, Any]) -> Figure:
    value = raw["value"]
    number = float(value) if isinstance(value, (int, float)) else float(Size.parse(value))
    return Figure(number, raw["source"], raw.get("derived", ""))
