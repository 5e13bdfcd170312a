"""The embedded runtime: no image, no daemon; a node sees the same Python environment as its controller."""

from emulator.runtimes.embedded.remove import find_labs
from emulator.runtimes.embedded.runtime import EmbeddedRuntime

__all__ = ["EmbeddedRuntime", "find_labs"]
