"""What HPL and mpirun print -> one result, or an error that says what happened."""

from __future__ import annotations

import re
from dataclasses import dataclass

from emulator.core.errors import BenchmarkError

_LINE = re.compile(r"^W\w+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.eE+-]+)\s*$", re.MULTILINE)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|\S*\s*=\s*(\S+)\s*\.+\s*(PASSED|FAILED)", re.MULTILINE)
_SIGNAL = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on\s+signal (\d+)")
_LOST = re.compile(r"ORTE has lost communication with a remote daemon|has lost\s+communication with")
#: what a program that the loader cannot start says
_MISSING = re.compile(r"error while loading shared libraries: (\S+?):")


@dataclass(frozen=True)
class Result:
    """One solution, in real seconds and FLOP a real second. `residual` is HPL's scaled one; the check is passed under
    16, or `passed` is False and the figure worthless."""

    n: int
    block: int
    rows: int
    columns: int
    seconds: float
    flops: float
    residual: float
    passed: bool


def operations(n: int) -> float:
    """Floating-point operations as HPL counts them."""
    return (2 / 3 * n + 3 / 2) * n * n


def parse(text: str) -> Result:
    """The one result in HPL's output; raises BenchmarkError where there is none."""
    line, residual = _LINE.search(text), _RESIDUAL.search(text)
    if line is None or residual is None:
        raise why_failed(text)
    n, block, rows, columns = (int(line[number]) for number in range(1, 5))
    flops = float(line[6]) * 1e9
    # The rate has four digits; the time has two behind the point, which is little for a short run.
    return Result(
        n, block, rows, columns, operations(n) / flops, flops, _number(residual[1]), residual[2] == "PASSED"
    )  # fmt: skip


def _number(text: str) -> float:
    """A residual; "nan" and "inf" (a failed check) become infinite."""
    value = float(text)
    return value if value == value else float("inf")


def why_failed(text: str, status: int | None = None) -> BenchmarkError:
    """What output without a result says about its end."""
    if found := _SIGNAL.search(text):
        what = f"the process on {found[2]} (rank {found[1]}) was ended by signal {found[3]}"
        return BenchmarkError(what, where="HPL", fix="run it again; `emu status` tells what the nodes are doing")
    if _LOST.search(text):
        return BenchmarkError("a node was lost while HPL ran", where="HPL", fix="see `emu status` for which")
    if "Memory allocation failed" in text:
        return BenchmarkError(
            "the matrix does not fit", where="HPL", fix="make `n` smaller, or the nodes' memory larger"
        )
    if found := _MISSING.search(text):
        fix = "give each node the same libraries; embedded nodes have this host's"
        return BenchmarkError(f"a node lacks the library {found[1]}", where="HPL", fix=fix)
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=\t")]
    told = f"; its last words: {lines[-1][:160]}" if lines else ""
    ended = "" if status is None else f" (status {status})"
    return BenchmarkError(f"HPL ended without a result{ended}{told}", where="HPL", fix="look into hpl.txt of the run")
