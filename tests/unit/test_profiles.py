"""Profiles: what a file may say, what is refused with file, line and remedy, variants, and a user's own folder."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from emulator.core.errors import DeviceError, TopologyError
from emulator.devices import names, profile
from emulator.devices.figures import KINDS

GOOD = """\
title: A board
cores: {value: 2, source: datasheet}
clock: {value: 1 GHz, source: datasheet}
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "boards"
    folder.mkdir()
    monkeypatch.setenv("EMU_DEVICES", str(folder))
    return folder


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.parametrize("name", names())
def test_every_shipped_figure_has_a_source_and_what_contradicts_is_refused(name: str) -> None:
    device = profile(name)
    assert device.title and device.shipped
    assert all(figure.source and figure.unit == KINDS[key].unit for key, figure in device.figures.items())
    assert all(one.source and one.conditions for one in device.training)


def test_the_published_figures_of_a_pi_4() -> None:
    device = profile("rpi-4")
    found = {key: figure.value for key, figure in device.figures.items()}
    assert found["hpl"] == 11.889e9
    assert [found[f"stream_{key}"] for key in ("copy", "scale", "add", "triad")] == [5527e6, 5562e6, 4855e6, 4844e6]
    assert (found["idle"], found["loaded"], found["hpl_power"]) == (3.1, 6.1, 7.2)
    assert (found["storage_read_4k"], found["storage_write_4k"]) == (11.8e6, 3.25e6)
    steps = {one.model: one.seconds * 20 for one in device.training}
    assert steps == pytest.approx(
        {
            "resnet18": 218.37, "resnet34": 407.24, "mobilenetv3_large": 245.97, "efficientnet_b0": 398.16,
            "mnasnet": 298.36,
        }
    )  # fmt: skip
    assert all((one.batch, one.image) == (16, 224) for one in device.training)
    assert device.figure("l3") is None


def test_a_variant_has_the_figures_of_its_device_but_its_own() -> None:
    base, variant, study = profile("rpi-4"), profile("rpi-4-8gb"), profile("rpi-4-study")
    assert variant.memory and variant.memory.value == 8 * 2**30
    assert variant.figure("hpl") == base.figure("hpl")
    assert study.figures["hpl"].value == 15.5e9
    assert study.figure("hpl_power") is None, "said to be unknown"
    assert profile("rpi-4-1.8ghz").training == (), "at which clock they were measured is not told"


def test_a_users_profile_is_found_by_its_files_name(own: Path, tmp_path: Path) -> None:
    write(own, GOOD)
    (tmp_path / "devices").mkdir()
    write(tmp_path / "devices", "title: Other\nextends: mine\nclock: {value: 2 GHz, source: overclocked}", "other")
    device = profile("other")
    assert (device.title, device.extends, device.shipped) == ("Other", "mine", False)
    assert device.figures["clock"].value == 2e9
    assert device.figures["cores"].value == 2
    assert {"mine", "other"} <= set(names())


def test_a_changed_file_is_read_again(own: Path) -> None:
    from emulator.devices.profile import _profile

    write(own, GOOD)
    assert profile("mine").title == "A board"
    write(own, GOOD.replace("A board", "Another board"))
    _profile.cache_clear()  # as in the next process
    assert profile("mine").title == "Another board"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', "\x00"])
def test_a_damaged_cache_only_costs_the_time(own: Path, tmp_path: Path, damage: str) -> None:
    from emulator.devices.profile import _profile

    write(own, GOOD)
    first = profile("mine")
    for kept in (tmp_path / "cache" / "emu" / "devices").iterdir():
        kept.write_text(damage)
    _profile.cache_clear()
    assert profile("mine") == first


def test_one_name_means_one_device(own: Path, tmp_path: Path) -> None:
    taken = write(own, GOOD, "rpi-4")
    with pytest.raises(DeviceError, match="a device 'rpi-4' ships with emu; rename this file") as found:
        profile("rpi-4")
    assert found.value.where == str(taken)
    taken.unlink()
    (tmp_path / "devices").mkdir()
    write(own, GOOD)
    write(tmp_path / "devices", GOOD)
    with pytest.raises(DeviceError, match=r"a device 'mine' is in .* as well; rename"):
        profile("mine")


def test_a_folder_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_DEVICES", "/nowhere")
    with pytest.raises(DeviceError, match="EMU_DEVICES: /nowhere: this is no folder"):
        profile("rpi-4")


@pytest.mark.parametrize(
    ("line", "said", "where"),
    [
        ("hlp: {value: 1 GFLOPS, source: x}", "unknown key 'hlp'; did you mean 'hpl'", 4),
        ("hpl: {valeu: 1 GFLOPS, source: x}", "unknown key 'valeu'; did you mean 'value'", 4),
        ("hpl: {value: 1, source: x}", "`hpl`: 1 has no unit; write a computing speed like '11.9 GFLOPS'", 4),
        ("hpl: {value: 1 GB/s, source: x}", "'GB/s' is not a unit of a computing speed", 4),
        ("hpl: 3 GFLOPS", "`hpl` is not a mapping; write it like {value: 11.9 GFLOPS, source: ...}", 4),
        ("hpl: {source: x}", "`hpl` has no `value`", 4),
        ("hpl: {value: 1 GFLOPS}", "the `source` of `hpl` is missing; say where it was read", 4),
        ("hpl: {value: 0 GFLOPS, source: x}", "`hpl` is 0 FLOPS; write what it is, or `hpl: unknown`", 4),
        ("hpl: {value: 70 GFLOPS, source: x}", "more than 2 cores at 1 GHz can do", 4),
        ("hpl: {value: 1 GFLOPS, source: x, conditions: [a]}", "`conditions` are not names with a value", 4),
        ("memory: {value: 4 KiB, source: x}", "4 KiB of memory are too little to run a program; check its unit", 4),
        ("memory: {value: 4 GiB, source: 7}", "`source` is not text; write it in quotes", 4),
        ("idle: {value: 5 W, source: x}\nloaded: {value: 4 W, source: x}", "`idle` (5 W) is above `loaded` (4 W)", 4),
        (
            "sevenzip_one: {value: 900 MIPS, source: x}\nsevenzip_all: {value: 800 MIPS, source: x}",
            "`sevenzip_one` (900 MIPS) is above `sevenzip_all` (800 MIPS)",
            4,
        ),
        (
            "sevenzip_one: {value: 900 MIPS, source: x}\nsevenzip_all: {value: 2500 MIPS, source: x}",
            "`sevenzip_all` (2500 MIPS) is more than 2 times `sevenzip_one`",
            5,
        ),
        ("thermal: [{clock: 2 GHz, source: x}]", "a thermal step at 2 GHz is above the device's clock of 1 GHz", 4),
        ("thermal: [{source: x}]", "this step says neither `above` nor `clock`", 4),
        (
            "training: [{source: x, batch: 0, image: 8, seconds: {a: 1 s}}]",
            "`batch` cannot be 0; write a whole number",
            4,
        ),
        ("training: [{source: x, batch: 1, image: 8}]", "`seconds` does not say how long each model took", 4),
        ("training: [{source: x, batch: 1, image: 8, seconds: {a: 3}}]", "`a`: 3 has no unit", 4),
        ("extends: rpi4", "there is no device 'rpi4' to extend; did you mean 'rpi-4'?", 4),
        ("extends: mine", "the devices extend each other in a loop: mine -> mine; take one out", 4),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_remedy(own: Path, line: str, said: str, where: int) -> None:
    path = write(own, GOOD + line)
    with pytest.raises(DeviceError) as found:
        profile("mine")
    assert said in str(found.value)
    assert found.value.where == f"{path}:{where}"
    assert found.value.fix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this file is empty; write `title:`"),
        ("- a", "does not hold a mapping; write `title:`"),
        ("title: [", "this is not YAML"),
        ("cores: {value: 2, source: x}", "the `title` is missing"),
        ("title: x\ncores: {value: 0, source: x}", "`cores` is 0"),
        ("title: x\ncores: {value: 1.5, source: x}", "there are no 1.5 cores; write a whole number"),
        ("title: x\nhpl: {value: 1 GFLOPS, source: x}", "`hpl` is of all cores, and `cores` is not known; add `cores`"),
    ],
)
def test_a_file_that_is_no_profile_is_told(own: Path, text: str, said: str) -> None:
    write(own, text)
    with pytest.raises(DeviceError) as found:
        profile("mine")
    assert said in str(found.value)
    assert "mine.yaml" in found.value.where


def test_stream_above_memcpy_is_no_contradiction(own: Path) -> None:
    write(own, GOOD + "memcpy: {value: 2 GB/s, source: x}\nstream_copy: {value: 5 GB/s, source: x}")
    assert profile("mine").figures["stream_copy"].value == 5e9


@pytest.mark.parametrize("name", ["../rpi-4", "RPI-4", "", "/etc/passwd", ".hidden"])
def test_a_name_that_no_device_can_have_is_not_looked_for(name: str) -> None:
    with pytest.raises(TopologyError, match="there is no device"):
        profile(name)


def test_the_commands_show_every_figure_and_name_a_broken_profile(own: Path) -> None:
    from typer.testing import CliRunner

    from emulator.cli.main import app

    write(own, GOOD)
    run = CliRunner()
    table = run.invoke(app, ["devices"], env={"COLUMNS": "140"})
    assert table.exit_code == 0
    assert "A board (yours)" in table.stdout
    assert "variant rpi-4-8gb: memory 8 GiB" in table.stdout
    shown = run.invoke(app, ["devices", "show", "rpi-4"], env={"COLUMNS": "200"})
    for text in ("11.889 GFLOPS", "precision double", "sci-pi.org.uk", "resnet34", "not known: L3 cache"):
        assert text in shown.stdout
    raw = json.loads(run.invoke(app, ["devices", "show", "rpi-4", "--json"]).stdout)
    assert raw["figures"]["stream_triad"]["value"] == 4844e6
    assert raw["not_known"] == ["l3"]
    write(own, "title: x\nhlp: 1", "broken")
    listing = run.invoke(app, ["devices", "--json"])
    assert listing.exit_code == DeviceError.exit_code
    assert "unknown key 'hlp'" in listing.stderr
    schema = json.loads(run.invoke(app, ["schema", "device"]).stdout)
    assert set(KINDS) < set(schema["properties"])
    assert run.invoke(app, ["schema", "board"]).exit_code != 0
    assert "mine" in [one["name"] for one in json.loads(listing.stdout)]
