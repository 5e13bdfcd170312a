"""What a machine is worth: profiles of devices, and the calibration of this host."""

from emulator.devices.profile import DeviceProfile, Figure, names, profile

__all__ = ["DeviceProfile", "Figure", "names", "profile"]
