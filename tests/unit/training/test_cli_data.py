"""`emu data`, from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from emulator.cli.data import app


def test_fetch_puts_a_data_set_in_the_cache_and_list_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path))
    fetched = CliRunner().invoke(app, ["fetch", "synthetic-mnist"])
    assert fetched.exit_code == 0
    assert fetched.stdout.strip() == str(tmp_path / "synthetic-mnist")
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    assert {row["name"]: row["cached_bytes"] for row in listed} == {"mnist": None, "synthetic-mnist": 10_205_048}
    table = CliRunner().invoke(app, ["list"]).stdout.splitlines()
    assert [line.split()[0] for line in table] == ["mnist", "synthetic-mnist"]
    assert "not cached" in table[0]
    assert "10.2 MB" in table[1]
