"""Device profiles: what a machine has and how fast it computes, each figure with its source.

A profile is a YAML file (docs/devices.md): those that ship lie in `profiles/`, a user's own in ./devices or in the
folders of EMU_DEVICES. `extends` makes a variant: the other device's figures, with its own laid over them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.errors import DeviceError, TopologyError
from emulator.devices import checks, folders
from emulator.devices.figures import Figure, ThermalStep, TrainingFigure
from emulator.devices.profile_cache import load

if TYPE_CHECKING:
    from collections.abc import Mapping

#: the device of a node that names none
UNLIMITED = "server"


@dataclass(frozen=True)
class DeviceProfile:
    """One device. A figure that is absent is not known (or, for `server` and `laptop`, is the host's).

    `figures` are by the names of `figures.KINDS`, in base units; `training` are measured training steps; `thermal` is
    how the clock falls with heat. `cpu_model` is the core as QEMU names it. `extends` is the device that this is a
    variant of, empty for none. `path` is the profile's own file.
    """

    name: str
    title: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    training: tuple[TrainingFigure, ...] = ()
    thermal: tuple[ThermalStep, ...] = ()
    cpu_model: str = ""
    extends: str = ""
    path: Path = Path()

    def figure(self, name: str) -> Figure | None:
        """The figure of that name (`figures.KINDS`), None where it is not known."""
        return self.figures.get(name)

    @property
    def shipped(self) -> bool:
        """Whether it comes with emu; else it is the user's own."""
        return self.path.parent == folders.SHIPPED

    @property
    def cores(self) -> Figure | None:
        """The number of cores."""
        return self.figure("cores")

    @property
    def memory(self) -> Figure | None:
        """Bytes of memory."""
        return self.figure("memory")

    @property
    def sgemm_gflops(self) -> Figure | None:
        """Single-precision matrix product on all cores, in GFLOPS."""
        found = self.figure("sgemm")
        return found and Figure(found.value / 1e9, "GFLOPS", found.source, found.derived, found.conditions)

    @property
    def core_gflops(self) -> float | None:
        """GFLOPS (single precision) of one core; None = worth one core of the host."""
        if self.sgemm_gflops is None or self.cores is None:
            return None
        return self.sgemm_gflops.value / self.cores.value


def names() -> list[str]:
    """All devices, in order of the alphabet."""
    return folders.names()


def profile(name: str) -> DeviceProfile:
    """The profile of that name.

    Raises TopologyError with the nearest name where there is none, DeviceError for a profile that is wrong.
    """
    path = folders.find(name)
    if path is None:
        import difflib

        near = difflib.get_close_matches(name, names(), 1)
        fix = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names())}"
        raise TopologyError(f"there is no device {name!r}", fix=fix)
    return _profile(name, path, folders.folders())


@cache
def _profile(name: str, path: Path, _folders: tuple[Path, ...], below: tuple[str, ...] = ()) -> DeviceProfile:
    """As `profile`; `below` are the devices that extend this one, for a loop."""
    said = load(path)
    base = _extended(name, path, said.extends, _folders, below) if said.extends else DeviceProfile(name, said.title)
    figures = {key: figure for key, figure in ({**base.figures, **said.figures}).items() if figure is not None}
    found = DeviceProfile(
        name,
        said.title,
        figures,
        base.training if said.training is None else said.training,
        base.thermal if said.thermal is None else said.thermal,
        base.cpu_model if said.cpu_model is None else said.cpu_model,
        said.extends,
        path,
    )
    for key, what, fix in checks.contradictions(found.figures, found.thermal):
        raise DeviceError(what, where=_where(path, key), fix=fix)
    return found


def _extended(name: str, path: Path, base: str, known: tuple[Path, ...], below: tuple[str, ...]) -> DeviceProfile:
    trail = (*below, name)
    if base in trail:
        loop = " -> ".join([*trail[trail.index(base) :], base])
        raise DeviceError(
            f"the devices extend each other in a loop: {loop}", where=_where(path, "extends"), fix="take one out"
        )
    found = folders.find(base)
    if found is None:
        from emulator.devices.profile_file import nearest

        what = f"there is no device {base!r} to extend"
        raise DeviceError(what, where=_where(path, "extends"), fix=nearest(base, names()))
    return _profile(base, found, known, trail)


def _where(path: Path, key: str) -> str:
    """`file:line` of a key; the file is read again for it, since a kept profile has no lines."""
    from emulator.devices.profile_file import document

    return document(path).where(key)
