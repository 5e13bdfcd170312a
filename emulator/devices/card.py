"""What a device's card carries, as caps want it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.plan import StoragePlan

if TYPE_CHECKING:
    from emulator.devices.profile import DeviceProfile

#: bytes of one operation in the published figures at random
BLOCK = 4096


def card(device: DeviceProfile) -> StoragePlan | None:
    """The card of a device; None where no figure of it is known. What is not known is not limited."""

    def value(name: str, unit: float = 1.0) -> float:
        found = device.figure(name)
        return found.value / unit if found else 0.0

    found = StoragePlan(
        value("storage_read"),
        value("storage_write"),
        value("storage_read_4k", BLOCK),
        value("storage_write_4k", BLOCK),
    )
    return found if found != StoragePlan() else None
