"""emu: emulate a cluster of small machines on one host, and train on it.

`Lab` brings a topology up; `run_experiment` trains on one and returns the figures. Both are loaded on first use,
so that `import emulator` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.core.version import VERSION

if TYPE_CHECKING:
    from emulator.core.errors import EmuError
    from emulator.experiment import run_experiment
    from emulator.lab import Lab

__version__ = VERSION
__all__ = ["EmuError", "Lab", "run_experiment"]


def __getattr__(name: str) -> Any:
    if name == "Lab":
        from emulator.lab import Lab

        return Lab
    if name == "run_experiment":
        from emulator.experiment import run_experiment

        return run_experiment
    if name == "EmuError":
        from emulator.core.errors import EmuError

        return EmuError
    raise AttributeError(f"module 'emulator' has no attribute {name!r}")
