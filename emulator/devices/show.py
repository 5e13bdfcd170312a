"""Profiles as people read them: rows of the table of devices, and all that is known of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.core.errors import DeviceError
from emulator.devices.figures import KINDS, seconds, text
from emulator.devices.profile import DeviceProfile, names, profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOT_KNOWN = "not known"
_DASH = "–"


class Fact(NamedTuple):
    """A line about a device: what it is, its value, and where it comes from."""

    name: str
    value: str
    source: str


def readable() -> tuple[list[DeviceProfile], list[DeviceError]]:
    """All profiles, a device before its variants, and what is wrong with those that cannot be read."""
    found, wrong = [], []
    for name in names():
        try:
            found.append(profile(name))
        except DeviceError as error:
            wrong.append(error)
    known = {one.name for one in found}
    heads = [one for one in found if one.extends not in known]
    return [each for one in heads for each in (one, *_variants(one, found))], wrong


def _variants(base: DeviceProfile, found: Sequence[DeviceProfile]) -> Iterator[DeviceProfile]:
    for one in found:
        if one.extends == base.name:
            yield one
            yield from _variants(one, found)


def differences(variant: DeviceProfile) -> str:
    """What a variant says otherwise than the device that it extends, in few words."""
    base = profile(variant.extends)
    said = [
        f"{key} {text(key, figure.value)}"
        for key, figure in variant.figures.items()
        if key not in base.figures or base.figures[key].value != figure.value
    ]
    if variant.training != base.training and variant.training:
        said.append("training")
    lost = [key for key in base.figures if key not in variant.figures]
    lost += ["training"] if base.training and not variant.training else []
    return ", ".join(said) + (f"; {NOT_KNOWN}: {', '.join(lost)}" if lost else "")


#: the columns of the table of devices, units in the second line
COLUMNS = (
    "device", "cores", "clock\nGHz", "memory", "HPL\nGFLOPS", "ResNet-18\nimages/s", "network\nMbit/s", "power\nW",
    "title",
)  # fmt: skip


def row(device: DeviceProfile) -> tuple[str, ...]:
    """The cells of a device, in the order of `COLUMNS`."""

    def cell(key: str, factor: float = 1.0) -> str:
        figure = device.figure(key)
        return _DASH if figure is None else f"{figure.value / factor:.5g}"

    memory = device.memory
    idle, loaded = device.figure("idle"), device.figure("loaded")
    trained = next((f"{one.images_per_second:.2f}" for one in device.training if one.model == "resnet18"), _DASH)
    return (
        device.name,
        cell("cores"),
        cell("clock", 1e9),
        _DASH if memory is None else text("memory", memory.value),
        cell("hpl", 1e9),
        trained,
        cell("nic", 1e6),
        f"{idle.value:g}-{loaded.value:g}" if idle and loaded else _DASH,
        device.title if device.shipped else f"{device.title} (yours)",
    )


def facts(device: DeviceProfile) -> list[Fact]:
    """Every figure that is known, in the order of `KINDS`, then training and heat."""
    found = [
        Fact(
            KINDS[key].meaning,
            text(key, figure.value) + _conditions(figure.conditions),
            _source(figure.source, figure.derived),
        )
        for key, figure in device.figures.items()
    ]
    found += [
        Fact(
            f"training, {one.model}",
            f"{seconds(one.seconds)} a step of {one.batch} images, {one.image}x{one.image}, "
            f"{one.images_per_second:.3g} images/s{_conditions(one.conditions)}",
            _source(one.source, one.derived),
        )
        for one in device.training
    ]
    for step in device.thermal:
        at = "then" if step.above is None else f"above {step.above:g} C"
        clock = "slower (by how much is not known)" if step.clock is None else text("clock", step.clock)
        found.append(Fact("heat", f"{at}: {clock}", _source(step.source, step.derived)))
    return found


def unknown(device: DeviceProfile) -> list[str]:
    """What the profile does not tell, by name."""
    lost = [kind.meaning for key, kind in KINDS.items() if key not in device.figures]
    return [*lost, *([] if device.training else ["training"]), *([] if device.thermal else ["heat"])]


def as_dict(device: DeviceProfile) -> dict[str, Any]:
    """The profile for JSON, values in base units."""
    from dataclasses import asdict

    return {
        "name": device.name,
        "title": device.title,
        "extends": device.extends or None,
        "file": str(device.path),
        "shipped": device.shipped,
        "cpu_model": device.cpu_model or None,
        "figures": {key: asdict(figure) for key, figure in device.figures.items()},
        "training": [asdict(one) for one in device.training],
        "thermal": [asdict(one) for one in device.thermal],
        "not_known": [key for key in KINDS if key not in device.figures]
        + ([] if device.training else ["training"])
        + ([] if device.thermal else ["thermal"]),
    }


def _conditions(conditions: Any) -> str:
    said = ", ".join(f"{key} {value}" for key, value in conditions.items())
    return f" ({said})" if said else ""


def _source(source: str, derived: str) -> str:
    return f"{source}; derived: {derived}" if derived else source
