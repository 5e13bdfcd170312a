"""The kernels by name. A kernel's file is imported when it is asked for: numpy and torch start threads on import."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from emulator.devices.workload import references

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.devices.kernels.reading import Work

_PLACES = {
    "dgemm": "gemm:double",
    "lu": "lu:lu",
    "sgemm": "gemm:single",
    "conv_large": "conv:large",
    "conv_small": "conv:small",
    "conv_depthwise": "conv:depthwise",
    "triad": "stream:triad",
    "interpreter": "interpreter:interpreter",
    "dispatch": "dispatch:dispatch",
    "copy": "stream:copy",
    "scale": "stream:scale",
    "add": "stream:add",
    "memcpy": "stream:memcpy",
    "sevenzip": "sevenzip:sevenzip",
}
NAMES = tuple(_PLACES)
#: goes up when the kernels change what they measure, so that figures of before are not mixed with new ones
EDITION = 2
#: those that need torch
TORCH = ("conv_large", "conv_small", "conv_depthwise", "dispatch")
#: those that use one thread whatever they are given: the interpreter's lock is held nearly all the time
ONE_THREAD = ("interpreter", "dispatch", "memcpy")
#: those that `emu calibrate` leaves out: published figures of boards are compared with them, or a node asks for them
COMPARED = ("copy", "scale", "add", "memcpy", "sevenzip")
#: a training step of a reference model, as "step_resnet18": only by name, for it takes seconds a round and a GiB
STEP = "step_"


def expand(asked: Iterable[str]) -> list[str]:
    """Kernels by name, each once and in `NAMES`' order; "conv" means all that begin with "conv_", none means all.

    Raises ValueError for a name that is none.
    """
    wanted = list(asked)
    steps = [name for name in dict.fromkeys(wanted) if name.startswith(STEP)]
    found: set[str] = set()
    for name in wanted:
        matching = {known for known in NAMES if known == name or known.startswith(f"{name}_")}
        if not matching and name.removeprefix(STEP) not in references():
            raise ValueError(f"there is no kernel {name!r}; there are {', '.join(NAMES)}, {STEP}MODEL")
        found |= matching
    return [name for name in NAMES if name in found or not wanted] + steps


def prepare(name: str, threads: int) -> Work:
    """The kernel's work, for so many threads. Raises ImportError where its library is not installed."""
    if name.startswith(STEP):
        from emulator.devices.kernels.step import prepare as step

        return step(name.removeprefix(STEP), threads)
    module, _, function = _PLACES[name].partition(":")
    found = getattr(import_module(f"emulator.devices.kernels.{module}"), function)
    return cast("Callable[[int], Work]", found)(threads)
