"""The report: every section, no outside resource, nothing unescaped."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest

from emulator.core.record import encode
from emulator.results.report import rebuild
from tests.unit.results import made

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = ("findings", "results", "figures", "split", "honesty")
FIGURES = (
    "Accuracy over time",
    "Accuracy over bytes to the server",
    "Staleness",
    "Time of a step",
    "CPU per node",
    "Traffic per node",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = made.run(tmp_path_factory.mktemp("runs"), made.variant("asgd"), made.variant("adacomp", "adacomp", 0.1))
    made.write(run, "asgd", [*made.server_records([0.8] * 5, 1_000_000), *made.lab_records()])
    made.write(run, "adacomp", [*made.server_records([0.9] * 5, 20_000), *made.lab_records(busy=0.99)])
    run.update(state="finished", notes=["<script>alert(1)</script>"])
    rebuild(run)
    return (run.directory / "report.html").read_text(encoding="utf-8")


def test_all_sections_and_figures_are_there(page: str) -> None:
    for section in SECTIONS:
        assert f'id="{section}"' in page
    for title in FIGURES:
        assert f"<h3>{title}</h3>" in page


def test_the_table_has_the_figures(page: str) -> None:
    for text in ("80.0 %", "90.0 %", "5 MB", "100 kB", "50.0×", "20 kB"):
        assert text in page, text


def test_figures_are_whole_images_inside_the_page(page: str) -> None:
    images = re.findall(r'<img src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"', page)
    assert len(images) == len(FIGURES)
    for image in images:
        assert base64.b64decode(image).rstrip().endswith(b"</svg>")


def test_nothing_comes_from_elsewhere(page: str) -> None:
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', page) == []
    assert "@import" not in page
    assert "url(" not in page


def test_what_others_wrote_is_escaped(page: str) -> None:
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_marked_run_says_so_at_the_top(page: str) -> None:
    assert "Marked: read these figures with care." in page.partition('id="results"')[0]


def test_the_page_is_the_same_each_time(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.8] * 5, 1_000_000))
    run.update(state="finished")
    rebuild(run)
    first = (run.directory / "report.html").read_bytes()
    rebuild(run)
    assert (run.directory / "report.html").read_bytes() == first


def test_an_interrupted_run_has_a_report_that_says_so(tmp_path: Path) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    made.write(run, "asgd", made.server_records([0.8], 1_000_000, stop=False))
    run.update(state="interrupted")
    assert rebuild(run)["state"] == "interrupted"
    assert "This run was interrupted." in (run.directory / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kinds", [(), ("budget_started",), ("budget_started", "evaluation")])
def test_a_run_cut_short_at_its_start_has_a_report(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    run = made.run(tmp_path, made.variant("asgd"))
    seen = {"updates": 0, "accuracy": 0.1, "loss": 2.3, "snapshot_t": 1.0}
    nothing = {"payload_bytes_to_server": 0, "message_bytes_to_server": 0}
    lines = {
        "budget_started": encode(1.0, "server", "budget_started", {}),
        "evaluation": encode(1.0, "evaluator", "evaluation", seen | nothing),
    }
    made.write(run, "asgd", [lines[kind] for kind in kinds])
    run.update(state="interrupted")
    assert rebuild(run)["variants"]["asgd"]["state"] == "incomplete"
    page = (run.directory / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == len(FIGURES)
