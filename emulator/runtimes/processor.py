"""The host's processor, as container images name it."""

from emulator.core.processor import host_arch

__all__ = ["host_arch"]
