"""What a machine is worth: profiles of devices, and the calibration of this host."""

from emulator.devices.figures import KINDS, Figure, ThermalStep, TrainingFigure
from emulator.devices.profile import DeviceProfile, names, profile

__all__ = ["KINDS", "DeviceProfile", "Figure", "ThermalStep", "TrainingFigure", "names", "profile"]
