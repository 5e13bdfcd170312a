"""A lab: a Plan brought to life by a runtime and a link driver. `Lab` is the whole interface."""

from emulator.lab.lab import Lab, LabStats
from emulator.lab.node import Completed, LabNode

__all__ = ["Completed", "Lab", "LabNode", "LabStats"]
