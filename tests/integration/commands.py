"""The command as a process of its own: started, watched until it trains, and its last words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EMU = [sys.executable, "-c", "from emulator.cli.main import main; main()"]


def training(arguments: list[str], cwd: Path) -> subprocess.Popen[str]:
    """`emu ARGUMENTS`, once its first variant (asgd) has told an accuracy."""
    process = subprocess.Popen([*EMU, *arguments], cwd=cwd, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("asgd: accuracy"):
            return process
    raise AssertionError(f"ended with {process.wait()} before it trained")


def rest(process: subprocess.Popen[str]) -> str:
    """What else it says on its error stream, to its end."""
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    return said
