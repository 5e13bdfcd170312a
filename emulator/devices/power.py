"""What a device draws: a straight line between its idle watts and those with all cores busy.

The line is a model, not a measurement: a board's draw also depends on clock, voltage, heat, memory, network and what
its cores compute (the same Pi 4 draws 6.1 W under stress and 7.2 W under HPL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.core.plan import PowerPlan

if TYPE_CHECKING:
    from emulator.devices.profile import DeviceProfile


def power(device: DeviceProfile) -> PowerPlan | None:
    """The line of a device; None where its profile has not both watts, or no cores."""
    idle, loaded, cores = (device.figure(key) for key in ("idle", "loaded", "cores"))
    if idle is None or loaded is None or cores is None:
        return None
    return PowerPlan(idle.value, loaded.value, cores.value)


def watts(line: PowerPlan, busy_cores: float) -> float:
    """Watts on average with so many of the device's cores busy; never above all of them."""
    utilisation = min(1.0, max(0.0, busy_cores / line.cores))
    return line.idle + (line.loaded - line.idle) * utilisation
