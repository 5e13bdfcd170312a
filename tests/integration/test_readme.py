"""The README's tour is run as it stands: each command ends well and says what the README shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BIN = str(Path(sys.executable).parent)


def _tour() -> list[tuple[str, str]]:
    """(command, shown output) of each `$ ` line in the console blocks."""
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            steps.append((command, output))
    return steps


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[A-Za-z][A-Za-z-]{3,}", text) if word != "KiB"}


@pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay", "ping")
def test_the_tour(tmp_path: Path) -> None:
    steps = _tour()
    assert len(steps) >= 6
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120"}
    try:
        for command, shown in steps:
            done = subprocess.run(
                command, shell=True, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
            )  # fmt: skip
            said = done.stdout + done.stderr
            assert done.returncode == 0, f"{command}\n{said}"
            missing = _words(shown) - _words(said)
            assert not missing, f"{command} no longer says {sorted(missing)}:\n{said}"
    finally:
        subprocess.run([f"{BIN}/emu", "down", "lan-4"], capture_output=True)


def test_every_command_it_names_exists() -> None:
    from emulator.cli.main import app

    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    named = set(re.findall(r"`emu ([a-z-]+)", README))
    assert named and named <= known


def test_every_page_it_links_to_exists() -> None:
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert links and all((ROOT / link).is_file() for link in links), links
