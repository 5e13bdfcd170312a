"""The command line as a person meets it: help for every verb, one sentence for each mistake, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.cli.main import app
from emulator.experiment.signals import orderly

VERBS = [
    "fidelity",
    *"up down status stats exec shell logs cp forward experiment report runs validate schema".split(),
    *"calibrate doctor isa-check".split(),
    *("devices show", "devices measure"),
    *(
        "link list",
        "link set",
        "link cut",
        "link heal",
        "link restart",
        "link health",
        "topology show",
        "data fetch",
        "data list",
    ),
    *("images build", "images list", "images prepare"),
]
EMU = str(Path(sys.executable).with_name("emu"))


def emu(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EMU, *argv],
        capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "100", **env},
    )  # fmt: skip


@pytest.fixture
def empty(tmp_path: Path) -> dict[str, str]:
    """An environment in which no lab is up."""
    return {"EMU_STATE_DIR": str(tmp_path / "state")}


def test_every_verb_is_registered_with_a_help_text() -> None:
    names = {command.name for command in app.registered_commands}
    groups = {
        f"{group.name} {command.name}"
        for group in app.registered_groups
        if group.typer_instance is not None
        for command in group.typer_instance.registered_commands
    }
    assert names | groups == set(VERBS)
    for command in app.registered_commands:
        assert command.callback is not None and command.callback.__doc__, command.name


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb: str) -> None:
    done = emu(*verb.split(), "--help")
    assert done.returncode == 0 and "Usage: emu" in done.stdout and not done.stderr


def test_version() -> None:
    from emulator import __version__

    assert emu("--version").stdout == f"emu {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        ("status", 0, ""),
        ("exec worker-1 -- true", 21, "no lab is up; start one with `emu up topologies/wan-10.yaml`"),
        ("exec -l no a -- true", 21, "no lab named 'no' is up; start one with `emu up FILE` (none is running)"),
        ("exec worker-1", 2, "no program was given; write it after two dashes: emu exec worker-1 -- hostname"),
        ("down", 21, "no lab is up; start one with `emu up topologies/wan-10.yaml`"),
        ("down nope", 21, "no lab named 'nope' is there; see `emu status --all`"),
        ("stats --interval 0", 2, "--interval: an interval cannot be 0; give seconds, like 1"),
        ("cp a b", 2, "exactly one of the two paths must be in a node; write it as NODE:PATH, e.g. worker-1:/tmp/x"),
        ("forward server", 2, "'server' is not NODE:PORT; write it like server:8080"),
        ("forward server:99999", 2, "'server:99999' is not NODE:PORT; write it like server:8080"),
        ("forward a:80 -p 99999", 2, "--port: a port cannot be 99999; give 1 to 65535, or leave it out for a free one"),
        ("forward a:80 -p -1", 2, "--port: a port cannot be -1; give 1 to 65535, or leave it out for a free one"),
        ("exec -e FOO a -- env", 2, "--env: 'FOO' is not NAME=VALUE; write it like -e DEBUG=1"),
        ("exec -e =x a -- env", 2, "--env: '=x' is not NAME=VALUE; write it like -e DEBUG=1"),
        ("stats a -l b", 2, "two labs are named, 'a' and 'b'; give one of the two"),
        ("stats a", 21, "no lab named 'a' is up; start one with `emu up FILE` (none is running)"),
        ("link health a", 21, "no lab named 'a' is up; start one with `emu up FILE` (none is running)"),
        ("link restart a", 21, "no lab named 'a' is up; start one with `emu up FILE` (none is running)"),
        ("up --foo", 2, "no such option: --foo; see `emu up --help`"),
        ("up", 2, "missing argument 'file'; see `emu up --help`"),
        ("validate a b", 2, "got unexpected extra argument(s) (b); see `emu validate --help`"),
        ("repor", 2, "no such command 'repor'; did you mean 'report'? see `emu --help`"),
        ("runs --out /etc/passwd", 32, "/etc/passwd: this is not a directory; give the one that the runs lie under"),
        (
            "report /etc",
            32,
            "/etc: this directory holds no run (no run.json); "
            "name a run that `emu runs` lists, or a run's own directory",
        ),
        (
            "experiment quick --link-driver foo",
            2,
            "--link-driver: no link driver is named 'foo'; use one of netem, relay, fake",
        ),
        (
            "experiment quick --runtime fake --out /etc/passwd/x",
            32,
            "/etc/passwd/x: cannot write results (Not a directory); choose another place with --out",
        ),
    ],
)
def test_mistakes_are_one_sentence(argv: str, code: int, sentence: str, empty: dict[str, str]) -> None:
    done = emu(*argv.split(), **empty)
    assert (done.returncode, done.stderr) == (code, f"emu: {sentence}\n" if sentence else "")


def test_a_value_of_the_wrong_kind_and_an_empty_one_are_one_sentence(empty: dict[str, str]) -> None:
    done = emu("up", "topologies/lan-4.yaml", "--seed", "x", **empty)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("emu: invalid value for '--seed': ") and done.stderr.endswith("`emu up --help`\n")
    done = emu("up", "", **empty)
    assert done.returncode == 2 and done.stderr.startswith("emu: a file's name is empty; name a topology file")
    done = emu("exec", "a", "--", "", **empty)
    assert done.returncode == 2 and done.stderr.startswith("emu: the program's name is empty; ")


def test_a_group_without_a_verb_shows_its_help() -> None:
    done = emu("link")
    assert done.returncode == 2 and "Usage: emu link" in done.stdout and not done.stderr


def test_a_file_that_may_not_be_read_is_left_to_the_reader_of_topologies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert app(["validate", "topologies/lan-4.yaml"], standalone_mode=False) is None


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("can't start new thread"), "no more processes or threads can be started; "),
        (PermissionError(13, "Permission denied", sys.executable), "this user may not start the Python"),
    ],
)
def test_what_a_full_or_closed_host_says_is_one_sentence(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fails)
    with pytest.raises(SystemExit) as end:
        main.main()
    said = capsys.readouterr().err
    assert end.value.code == 20 and sentence in said and said.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_verb_that_is_interrupted_says_what_is_left(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def works(*_: object) -> None:
        with orderly("nothing of lab x is left"):
            signal.raise_signal(number)

    monkeypatch.setattr("emulator.lab.doctor.checks", works)
    monkeypatch.setattr("sys.argv", ["emu", "doctor"])
    with pytest.raises(SystemExit) as end:
        main.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "emu: interrupted; nothing of lab x is left\n")


@pytest.mark.parametrize(
    "error", [RuntimeError("another"), PermissionError(13, "Permission denied", "/x"), BlockingIOError(11, "no fork")]
)
def test_a_bug_of_ours_stays_loud(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fails)
    with pytest.raises(type(error)):
        main.main()


def test_a_refused_fork_is_told_from_any_other_thing_that_should_be_tried_again() -> None:
    def forks(really: bool) -> None:
        if really:
            os.fork()
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with pytest.raises(BlockingIOError) as caught:
        forks(False)
    assert "no more processes" in str(main._limit_of_host(caught.value))
    assert main._limit_of_host(BlockingIOError(11, "Resource temporarily unavailable")) is None


def test_measured_times_are_rounded_and_one_thing_is_no_things() -> None:
    from emulator.cli.link import _time
    from emulator.core.units import Delay
    from emulator.core.words import counted

    assert _time(Delay(40.691698814043775e-6)) == "40.7 us" and _time(Delay(0.0123456)) == "12.3 ms"
    assert (counted(1, "link"), counted(2, "link"), counted(0, "link")) == ("1 link", "2 links", "0 links")


def test_a_lab_name_that_is_no_name_is_a_sentence(empty: dict[str, str]) -> None:
    for argv in (["status", "../etc"], ["down", "A B"], ["exec", "-l", "../x", "a", "--", "true"]):
        done = emu(*argv, **empty)
        assert done.returncode == 2 and "is not a lab name" in done.stderr and "Traceback" not in done.stderr


def test_fake_cannot_stay_up(empty: dict[str, str]) -> None:
    done = emu("up", "topologies/lan-4.yaml", "--runtime", "fake", **empty)
    assert done.returncode == 2 and "the fake runtime lives inside one process" in done.stderr


def test_unknown_runtime_and_driver_name_the_known_ones(empty: dict[str, str]) -> None:
    for option, known in (("--runtime", "embedded"), ("--link-driver", "relay")):
        done = emu("up", "topologies/lan-4.yaml", option, "nonsense", **empty)
        assert done.returncode == 2 and "nonsense" in done.stderr and known in done.stderr


def test_dry_run_makes_nothing_and_prints_the_plan(empty: dict[str, str], tmp_path: Path) -> None:
    table = emu("up", "topologies/wan-10.yaml", "--dry-run", **empty)
    assert table.returncode == 0 and "worker-10" in table.stdout and "rpi-4" in table.stdout
    plan = json.loads(emu("up", "topologies/wan-10.yaml", "--dry-run", "--json", **empty).stdout)
    assert len(plan["nodes"]) == 12 and len(plan["links"]) == 11
    assert not (tmp_path / "state").exists()


def test_doctor_lists_every_part(empty: dict[str, str]) -> None:
    found = {check["name"]: check for check in json.loads(emu("doctor", "--json", **empty).stdout)}
    assert {
        "host",
        "calibration",
        "runtime embedded",
        "runtime fake",
        "links netem",
        "links relay",
        "torch",
        "data mnist",
    } <= set(found)
    assert all(check["fix"] for check in found.values() if check["state"] == "bad")


def test_a_closed_pipe_is_no_traceback(empty: dict[str, str]) -> None:
    done = subprocess.run(
        f"{EMU} schema | head -c 10",
        shell=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr


def test_down_takes_a_lab_or_all_never_both(empty: dict[str, str]) -> None:
    done = emu("down", "lan-4", "--all", **empty)
    assert done.returncode == 2 and "--all removes every lab, and 'lan-4' was named too" in done.stderr


def test_a_state_directory_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "labs").write_text("")
    for verb in ("status", "stats"):
        done = emu(verb, EMU_STATE_DIR=str(tmp_path))
        assert done.returncode == 20 and "the state directory cannot be read" in done.stderr


def test_a_damaged_state_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "labs" / "foo").mkdir(parents=True)
    done = emu("status", "foo", EMU_STATE_DIR=str(tmp_path))
    assert done.returncode == 21 and "the state of lab 'foo' is damaged; clean it with `emu down foo`" in done.stderr


def test_dry_run_refuses_an_unknown_runtime_and_driver(empty: dict[str, str]) -> None:
    for option in ("--runtime", "--link-driver"):
        assert emu("up", "topologies/lan-4.yaml", "--dry-run", option, "foo", **empty).returncode == 2


def test_a_lab_is_found_by_the_name_its_topology_gives(empty: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("name: my-lab\nnodes: {a: {device: rpi-4}, b: {device: rpi-4}}\nlinks: [{from: a, to: b}]\n")
    assert "no lab named 'my-lab' is up" in emu("status", str(path), **empty).stderr


def test_output_that_cannot_be_written_or_shown_is_no_traceback(empty: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([EMU, "schema"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 20 and "Traceback" not in done.stderr
    assert emu("topology", "show", "topologies/lan-4.yaml", **empty, PYTHONIOENCODING="latin-1").returncode == 0


def test_a_lab_of_a_taken_name_is_not_taken_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from emulator import EmuError, Lab

    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path))
    with Lab.from_file("topologies/lan-4.yaml", runtime="fake") as first:
        with (
            pytest.raises(EmuError, match="is there already"),
            Lab.from_file("topologies/wan-10.yaml", name="lan-4", runtime="fake"),
        ):
            raise AssertionError("never entered")
        assert first.node("worker-1").run(["echo", "alive"]).stdout == "alive\n"
