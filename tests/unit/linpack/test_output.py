"""HPL's output is read as it is: a result, a failed check, or a sentence about what ended it."""

from __future__ import annotations

import math

import pytest

from emulator.core.errors import BenchmarkError
from emulator.experiment.linpack.hpl_file import hpl_file
from emulator.experiment.linpack.output import operations, parse, why_failed
from tests.unit.linpack.printed import FAILED, KILLED, NAN, NO_MEMORY, PASSED


def test_a_result_is_read() -> None:
    found = parse(PASSED)
    assert (found.n, found.block, found.rows, found.columns) == (2000, 128, 1, 2)
    assert found.flops == pytest.approx(8.842e9)
    assert found.seconds == pytest.approx(0.6039, abs=1e-4)  # more digits than HPL's own "0.60"
    assert found.passed and found.residual == pytest.approx(0.003679)


@pytest.mark.parametrize(("text", "residual"), [(FAILED, 812.3014), (NAN, math.inf)])
def test_a_failed_check_is_told(text: str, residual: float) -> None:
    found = parse(text)
    assert not found.passed and found.residual == residual


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KILLED, r"the process on pi-2 \(rank 1\) was ended by signal 9; "),
        (NO_MEMORY, r"the matrix does not fit; make `n` smaller"),
        ("ORTE has lost communication with a remote daemon.\n", "a node was lost while HPL ran"),
        (
            "xhpl: error while loading shared libraries: libopenblas.so.0: cannot open\n",
            "lacks the library libopenblas",
        ),
        ("----\nHPL's input file cannot be used\n----\n", r"without a result.*HPL's input file cannot be used"),
        ("", "HPL ended without a result; look into hpl.txt"),
    ],
)
def test_output_without_a_result_says_why(text: str, message: str) -> None:
    with pytest.raises(BenchmarkError, match=message):
        parse(text)


def test_a_status_is_told() -> None:
    assert "(status 213)" in str(why_failed("", 213))


def test_operations_are_counted_as_hpl_counts_them() -> None:
    assert operations(2000) == pytest.approx(2 / 3 * 2000**3 + 3 / 2 * 2000**2)


def test_the_input_file_asks_for_one_problem() -> None:
    lines = hpl_file(8000, 128, 2, 3).splitlines()
    values = [line.split()[0] for line in lines[2:]]
    assert len(lines) == 31
    assert values[3] == "8000" and values[5] == "128" and values[8:10] == ["2", "3"]
