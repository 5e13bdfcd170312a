"""The host's processor, as container images name it."""

from __future__ import annotations

import platform

_NAMES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
#: those that a node may ask for
ARCHITECTURES = ("amd64", "arm64")


def host_arch() -> str:
    """\"amd64\" or \"arm64\"; elsewhere what the kernel says."""
    machine = platform.machine()
    return _NAMES.get(machine, machine)
