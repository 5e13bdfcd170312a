"""The fidelity report: its rows and arithmetic with a bench that says what it is told, its page, its small programs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from emulator.devices.kernels import reading, sevenzip
from emulator.devices.profile import profile
from emulator.devices.workload import references
from emulator.fidelity import measure, tcp
from emulator.fidelity.bench import NotMeasured
from emulator.fidelity.row import Row
from emulator.results import fidelity, store
from emulator.results.fidelity import CALIBRATED, PREDICTED, errors
from emulator.results.listing import listing
from emulator.results.report import rebuild


class Told:
    """A bench without nodes."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def kernel(self, device: str, basis: str, kernel: str) -> float:
        self.asked.append((device, basis, kernel))
        return 2e9

    def step(self, device: str, model: str) -> tuple[float, float]:
        self.asked.append((device, f"train:{model}"))
        return 10.0, 0.05

    def hpl(self, device: str) -> tuple[float, str]:
        self.asked.append((device, "hpl"))
        return 1e10, "HPL itself"

    def sevenzip(self, device: str, threads: int) -> float:
        self.asked.append((device, "sevenzip", str(threads)))
        raise NotMeasured("7-Zip is not installed")

    def tcp(self, device: str) -> float:
        self.asked.append((device, "tcp"))
        return 9e8

    def card(self, device: str) -> dict[str, float]:
        self.asked.append((device, "card"))
        return dict.fromkeys(measure.CARD, 2e7)


def silent(_text: str) -> None:
    return


def found_rows(quick: bool, bench: Told | None = None) -> dict[str, Row]:
    return {one.figure: one for one in measure.rows(profile("rpi-4"), quick, bench or Told(), silent)}


def row(role: str, reference: float, node: float | None) -> dict[str, object]:
    return Row("d", "f", role, "s", reference, "a book", node, "").to_json()


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


def test_every_figure_has_a_row_and_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "find_spec", lambda _name: object())
    bench = Told()
    found = found_rows(False, bench)
    assert found["hpl"].node == 1e10 and found["train_resnet34"].node == pytest.approx(10)
    assert {f"train_{model}" for model in references()} <= set(found)
    roles = {name: one.role for name, one in found.items()}
    assert {name for name, role in roles.items() if role == CALIBRATED} == {
        *measure.INPUTS,
        "train_resnet18",
        "train_mobilenetv3_large",
    }
    assert found["sevenzip_all"].node is None
    assert found["sevenzip_all"].note == "7-Zip is not installed"
    assert ("rpi-4", "train:resnet34") in bench.asked
    assert ("rpi-4", "sevenzip", "4") in bench.asked and ("rpi-4", "sevenzip", "1") in bench.asked
    assert bench.asked.count(("rpi-4", "card")) == 1
    assert found["storage_read"].error == pytest.approx(2e7 / 43.92e6 - 1)


def test_a_card_that_cannot_be_capped_leaves_its_rows_empty_with_the_reason() -> None:
    class InMemory(Told):
        def card(self, device: str) -> dict[str, float]:
            super().card(device)
            raise NotMeasured("the nodes' files are in memory")

    bench = InMemory()
    found = found_rows(False, bench)
    assert {found[key].note for key in measure.CARD} == {"the nodes' files are in memory"}
    assert bench.asked.count(("rpi-4", "card")) == 1


def test_quick_runs_one_step_and_says_what_it_leaves_out() -> None:
    bench = Told()
    found = found_rows(True, bench)
    assert {one.figure for one in found.values() if one.note != measure.LEFT_OUT} == set(measure.QUICK)
    assert {asked[-1] for asked in bench.asked} == {"hpl", "triad", "train:mnasnet"}


def test_a_report_is_a_run_with_a_page_and_a_place_in_the_list(tmp_path: Path) -> None:
    run = store.create(tmp_path, "fidelity-rpi-4", 0)
    run.write(
        "experiment.json", {"kind": "fidelity", "devices": ["rpi-4"], "quick": True, "time_scale": 0.4, "seed": 0}
    )
    run.write(fidelity.ROWS, {"rows": [one.to_json() for one in found_rows(True).values()]})
    run.update(state="finished", engine="emulation", runtime="embedded", link_driver="relay", marks=["busy <b>"])
    summary = rebuild(run)
    assert summary["median_error_predicted"] == pytest.approx(
        errors(summary["rows"])["median_error_predicted"], rel=1e-12
    )
    page = (run.directory / "report.html").read_text()
    assert "busy &lt;b&gt;" in page and "data:image/svg+xml" in page and "left out by --quick" in page
    (entry,) = listing(tmp_path)
    assert entry["state"] == "finished" and "error over what is predicted" in entry["result"]


RATED = """
22:       1700   186    887   1653  |      18943   200    808   1616
----------------------------------  | ------------------------------
Avr:             187    887   1660  |              200    808   1617
Tot:             193    848   1638
"""


def test_the_rating_of_7_zip_is_the_total_one() -> None:
    assert sevenzip.rating(RATED) == 1638
    with pytest.raises(ValueError, match="no total"):
        sevenzip.rating("Illegal instruction")


def test_a_pass_of_7_zip_is_worth_its_rating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "7zz"
    program.write_text(f"#!/bin/sh\necho $@ >> {tmp_path}/asked\nsleep 0.05\ncat <<'END'\n{RATED}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = reading.measure(sevenzip.sevenzip(2), 0.2)
    assert (tmp_path / "asked").read_text().startswith("b 1 -mmt2 -md22\n")
    assert found.best == pytest.approx(1638, rel=0.5) and found.unit == "million instructions/s"


def test_without_7_zip_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r"7-Zip is not installed .*p7zip-full"):
        sevenzip.sevenzip(1)


def test_a_connection_is_measured_after_its_start_and_ends_by_itself() -> None:
    got: list[float] = []
    port = 45_201
    server = threading.Thread(target=lambda: got.append(tcp.serve(port, 0.2)))
    server.start()
    tcp.send("127.0.0.1", port)
    server.join(10)
    assert got and got[0] > 1e6
