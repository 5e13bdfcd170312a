"""Small programs whose speed tells what a machine is worth; the same on this host, in a node and on a real board.

`python -m emulator.devices.kernels NAME... [--threads N] [--copies N] [--seconds S]` prints one JSON object:

    {"threads": 1, "copies": 1, "kernels": {"dgemm": {"unit": "FLOP/s", "size": "n=768", "best": 3.1e10, "median":
    3.0e10, "mean": 2.9e10, "rounds": 35, "seconds": 1.02}}, "left_out": {"conv_large": "torch is not installed"},
    "versions": {...}}

It needs Python and numpy, and torch for `conv_*` and `dispatch` (without it these are in `left_out`). Every figure is
a rate: more is faster.
"""

from emulator.devices.kernels.reading import Reading, Work, added
from emulator.devices.kernels.register import NAMES, TORCH, expand

__all__ = ["NAMES", "TORCH", "Reading", "Work", "added", "expand"]
