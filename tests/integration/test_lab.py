"""The command line on real namespaces: what a user does with a lab, from `up` to `down`."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from emulator.lab import Lab
from tests.integration.small_lab import topology
from tests.integration.traces import EMU, emu, traces

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay")


def test_up_and_down_leave_nothing(tmp_path: Path) -> None:
    before = traces()
    path = topology(tmp_path, "it-clean")
    for _ in range(3):
        emu("up", str(path))
        during = traces()
        assert during.namespaces >= before.namespaces + 3
        emu("down", "it-clean")
    assert traces() == before


@pytest.mark.slow
def test_fifty_times_in_a_row_leak_nothing() -> None:
    before = traces()
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with Lab.from_file("topologies/lan-4.yaml", name="it-fifty"):
            pass
    assert traces() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("verb", ["up", "down"])
@pytest.mark.parametrize("moment", [0.05, 0.25, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7])
def test_killed_at_any_moment_leaves_nothing_after_down_all(verb: str, moment: float, tmp_path: Path) -> None:
    before = traces()
    name = "it-killed"
    path = topology(tmp_path, name)
    if verb == "down":
        emu("up", str(path))
    argv = ["up", str(path)] if verb == "up" else ["down", name]
    process = subprocess.Popen([EMU, *argv], stdout=subprocess.DEVNULL)
    time.sleep(moment)
    process.kill()
    process.wait()
    emu("down", "--all")
    assert traces() == before


def test_up_goes_on_where_a_killed_up_left_a_half_made_lab(tmp_path: Path) -> None:
    before = traces()
    path = topology(tmp_path, "it-again")
    process = subprocess.Popen([EMU, "up", str(path)], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    process.kill()
    process.wait()
    done = emu("up", str(path), check=False)
    if done.returncode:  # it was quicker than the kill, and the lab is up
        assert "is there already" in done.stderr
    assert emu("exec", "-l", "it-again", "worker-2", "--", "hostname").stdout == "worker-2\n"
    emu("down", "it-again")
    assert traces() == before


def test_python_interface(tmp_path: Path) -> None:
    before = traces()
    with Lab.from_file(topology(tmp_path, "it-python")) as lab:
        node = lab.node("worker-1")
        assert node.run(["cat"], input="hello").stdout == "hello"
        assert node.run(["sh", "-c", "echo oops >&2; exit 3"]).returncode == 3
        assert node.run(["sh", "-c", 'echo "$EMU_NODE $X"'], env={"X": "1"}).stdout == "worker-1 1\n"
        results: list[str] = []
        threads = [threading.Thread(target=lambda: results.append(node.run(["hostname"]).stdout)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == ["worker-1\n"] * 4
        assert node.usage().pids >= 1
    assert traces() == before
