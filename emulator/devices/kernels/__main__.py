"""`python -m emulator.devices.kernels`: see the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from emulator.core.allocator import keep_freed_memory
from emulator.core.threads import VARIABLES
from emulator.devices.kernels.reading import Reading, added, measure
from emulator.devices.kernels.register import NAMES, ONE_THREAD, expand, prepare

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

MOST = 256
#: real seconds for which a copy waits for the others: one that died never comes
TOGETHER = 60.0


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for and print it. numpy is imported only once its threads are set."""
    asked = _parse(arguments)
    # A wrong OPENBLAS_CORETYPE and its like halve the figures, or end in an illegal instruction.
    for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
        del os.environ[name]
    os.environ.update(dict.fromkeys(VARIABLES, str(asked.threads)))
    keep_freed_memory()
    copies = _copies(asked.kernels, asked.threads, asked.seconds, asked.copies)
    readings = {name: added([copy[0][name] for copy in copies]) for name in copies[0][0]}
    print(  # noqa: T201
        json.dumps(
            {
                "threads": asked.threads,
                "copies": asked.copies,
                "kernels": {name: asdict(reading) for name, reading in readings.items()},
                "left_out": copies[0][1],
                "versions": _versions(),
            }
        )
    )


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulator.devices.kernels", description="Measure this machine.")
    parser.add_argument("kernels", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}, conv; none = all")
    parser.add_argument("--threads", type=_count, default=1, help="of the kernel itself")
    parser.add_argument("--copies", type=_count, default=1, help="processes at once; their rates are added up")
    parser.add_argument("--seconds", type=_seconds, default=1.0, help="real seconds for each kernel")
    asked = parser.parse_args(arguments)
    try:
        asked.kernels = expand(asked.kernels)
    except ValueError as error:
        parser.error(str(error))
    return asked


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MOST}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError("must be above 0, at most 3600")
    return value


_Result = tuple[dict[str, Reading], dict[str, str]]


def _copies(kernels: list[str], threads: int, seconds: float, copies: int) -> list[_Result]:
    """What each copy read. They are forked before numpy is imported, and begin each kernel together."""
    if copies == 1:
        return [_measure(kernels, threads, seconds)]
    from multiprocessing import get_context

    fork = get_context("fork")
    barrier = fork.Barrier(copies)
    pipes = [fork.Pipe(duplex=False) for _ in range(copies)]
    children = [
        fork.Process(target=_child, args=(theirs, barrier, kernels, threads, seconds), daemon=True)
        for _, theirs in pipes
    ]
    for child, (_, theirs) in zip(children, pipes, strict=True):
        child.start()
        theirs.close()
    try:
        found = [ours.recv() for ours, _ in pipes]
    except EOFError:
        sys.exit("a copy ended before its time")
    for child in children:
        child.join()
    return found


def _child(out: Connection, barrier: Barrier, kernels: list[str], threads: int, seconds: float) -> None:
    out.send(_measure(kernels, threads, seconds, barrier))


def _measure(kernels: list[str], threads: int, seconds: float, barrier: Barrier | None = None) -> _Result:
    found: dict[str, Reading] = {}
    left_out: dict[str, str] = {}
    for name in kernels:
        try:
            work = prepare(name, 1 if name in ONE_THREAD else threads)
        except ImportError as error:
            left_out[name] = f"{error.name or 'a library'} is not installed"
            continue
        if barrier is not None:
            barrier.wait(TOGETHER)
        found[name] = measure(work, seconds)
    return found, left_out


def _versions() -> dict[str, Any]:
    known: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in ("numpy", "torch"):
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = None
    return known


if __name__ == "__main__":
    main()
