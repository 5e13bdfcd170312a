"""The fidelity report's arithmetic, with a measurer that says what it is told."""

from __future__ import annotations

import pytest

from emulator.devices.kernels.reading import Reading
from emulator.devices.profile import profile
from emulator.devices.workload import references
from emulator.fidelity import measure
from emulator.fidelity.row import CALIBRATED, PREDICTED, Row, errors


def row(role: str, reference: float, node: float | None) -> Row:
    return Row("d", "f", role, "s", reference, "a book", node, "")


def test_errors_are_over_what_is_predicted_and_measured_only() -> None:
    found = errors(
        [
            row(CALIBRATED, 1, 9),
            row(PREDICTED, 10, 9),
            row(PREDICTED, 10, 12),
            row(PREDICTED, 10, 10),
            row(PREDICTED, 10, None),
        ]
    )
    assert found["median_error_predicted"] == pytest.approx(0.1)
    assert found["worst_error_predicted"] == pytest.approx(0.2)
    assert (found["predicted_measured"], found["predicted"]) == (3, 4)


def test_nothing_measured_has_no_error() -> None:
    assert errors([row(PREDICTED, 1, None)])["median_error_predicted"] is None


def test_every_figure_has_a_row_in_emulated_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "find_spec", lambda _name: object())
    asked: list[tuple[str, str]] = []

    def fake(_device: str, basis: str, kernel: str) -> Reading:
        asked.append((basis, kernel))
        rate = 0.5 if kernel.startswith("step_") else 2e9
        return Reading("x/s", "", rate, rate, rate, 3, 1.0)

    device = profile("rpi-4")
    found = {one.figure: one for one in measure.rows(device, 0.2, False, fake)}
    assert found["hpl"].node == pytest.approx(4e8)  # a real second is five emulated ones
    assert found["train_resnet34"].node == pytest.approx(10)  # 2 real seconds
    assert {f"train_{model}" for model in references()} <= set(found)
    roles = {name: one.role for name, one in found.items()}
    assert {name for name, role in roles.items() if role == CALIBRATED} == {
        "hpl",
        "train_resnet18",
        "train_mobilenetv3_large",
    }
    assert found["sevenzip_all"].node is None
    assert found["sevenzip_all"].note == measure.NOT_YET
    assert ("train:resnet34", "step_resnet34") in asked


def test_quick_runs_one_step_and_says_what_it_leaves_out() -> None:
    asked: list[str] = []

    def fake(_device: str, _basis: str, kernel: str) -> Reading:
        asked.append(kernel)
        return Reading("x/s", "", 1, 1, 1, 3, 1.0)

    found = {one.figure: one for one in measure.rows(profile("rpi-4"), 0.2, True, fake)}
    assert found["train_resnet34"].note == "left out by --quick"
    assert not {"step_resnet34", "step_resnet18"} & set(asked)
