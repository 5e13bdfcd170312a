"""`emu validate`, `emu schema` and `emu topology show`, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from emulator.core.errors import UsageError
from emulator.core.plan import Plan
from emulator.topology.draw import draw
from emulator.topology.schema import json_schema
from emulator.topology.table import plan_table
from tests.unit.topology.cluster import plan_of

ROOT = Path(__file__).parents[3]


def emu(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from emulator.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


def test_validate_counts() -> None:
    done = emu("validate", "topologies/two-sites.yaml")
    assert (done.returncode, done.stdout) == (0, "ok: two-sites (7 hosts, 2 switches, 2 routers, 10 links)\n")
    done = emu("validate", "--json", "topologies/wan-10.yaml")
    assert json.loads(done.stdout) == {"name": "wan-10", "ok": True, "nodes": {"host": 11, "router": 1}, "links": 11}


def test_validate_tells_a_mistake_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("nodes:\n  a: {devise: rpi-4}\n")
    done = emu("validate", path)
    assert done.returncode == 10
    assert done.stdout == ""
    assert done.stderr == f"emu: {path}:2: unknown key 'devise'; did you mean 'device'?\n"


def test_show_as_json_is_a_plan() -> None:
    done = emu("topology", "show", "--json", "topologies/lan-4.yaml")
    assert Plan.from_json(done.stdout).name == "lan-4"


def test_show_draws(tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    done = emu("topology", "show", "topologies/wan-10.yaml", "--plot", path)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(b"\x89PNG")
    done = emu("topology", "show", "topologies/lan-4.yaml", "--plot", tmp_path / "no" / "out.png")
    assert done.returncode == 20
    assert "the drawing cannot be written (No such file or directory)" in done.stderr
    done = emu("topology", "show", "topologies/lan-4.yaml", "--plot", tmp_path / "out.xyz")
    assert done.returncode == 2
    assert "name a .png, .svg or .pdf file" in done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("here", "this is a directory"),
        ("here.png", "this is a directory"),
        ("bare", "a drawing's file needs an ending"),
    ],
)
def test_a_path_that_names_no_drawing_is_refused(tmp_path: Path, name: str, sentence: str) -> None:
    if name.startswith("here"):
        (tmp_path / name).mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=sentence):
        draw(plan_of("nodes: {a: , b: }\nlinks: [{from: a, to: b}]"), tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_show_prints_a_tree_with_both_directions() -> None:
    done = emu("topology", "show", "topologies/wan-10.yaml")
    text = " ".join(done.stdout.split())
    assert "core (router)" in text
    assert "worker-7 (rpi-4, worker: 4 cores, 4 GiB" in text
    assert "↓ 20 Mbit ↑ 5 Mbit" in text


def test_a_ring_is_a_tree_with_a_cross_reference() -> None:
    from emulator.topology.tree import plan_tree

    plan = plan_of("nodes: {r: {count: 3, kind: router}, h: }\nlinks: [{from: r-*, to: r-*}, {from: h, to: r-1}]")
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(plan_tree(plan))
    assert console.export_text().count("also to") == 1


def test_the_table_shows_both_directions_and_the_notes() -> None:
    plan = plan_of(
        "nodes: {a: {device: rpi-4, uplink: dsl}, b: , r: {kind: router}}\nlinks: [{from: [a, b], to: r}]",
        time_scale=0.01,
    )
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(plan_table(plan))
    text = console.export_text()
    rows = [" ".join(row.split()) for row in text.splitlines()]
    assert "a r 384 kbit 25 ms 64 KiB wpt-dsl" in rows
    assert "r a 1.5 Mbit 25 ms 64 KiB wpt-dsl" in rows
    assert any(row.startswith("a rpi-4 4 4 4 4 GiB 10.") for row in rows)
    assert "times slower than asked" in text


def _properties(schema: dict[str, Any], name: str) -> dict[str, Any]:
    properties: dict[str, Any] = schema["$defs"][name]["properties"]
    return properties


def test_the_schema_knows_devices_presets_and_refuses_other_keys() -> None:
    done = emu("schema")
    schema = json.loads(done.stdout)
    assert schema == json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"nodes"}
    assert "rpi-4" in json.dumps(_properties(schema, "Node")["device"])
    assert "sitespeed-4g" in json.dumps(_properties(schema, "Link")["preset"])
    assert "wpt-dsl" in json.dumps(_properties(schema, "Node")["uplink"])
    assert {"from", "to", "rate", "up", "down"} <= _properties(schema, "Link").keys()


@pytest.mark.parametrize("name", ["Node", "Link", "Group", "Shape"])
def test_every_key_of_the_schema_is_in_the_reference_page(name: str) -> None:
    page = (ROOT / "docs" / "topology.md").read_text()
    missing = [key for key in _properties(json_schema(), name) if f"`{key}`" not in page]
    assert not missing


def test_every_preset_and_device_is_in_the_reference_page() -> None:
    from emulator.devices import names
    from emulator.topology.presets import NAMES

    page = (ROOT / "docs" / "topology.md").read_text()
    assert not [name for name in (*NAMES, *names()) if f"`{name}`" not in page]
