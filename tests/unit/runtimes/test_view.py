"""What of the host a node may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.runtimes import namespaces
from emulator.runtimes.embedded import rootfs, view


def test_a_home_or_a_hidden_directory_itself_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/", "/tmp", str(Path.home())):
        monkeypatch.chdir(place)
        found = view.of_host()
        assert place not in found.shown
        assert found.cwd == view.HOME or found.cwd == place == "/" or not found.cwd.startswith(place + "/x")


def test_a_working_directory_under_a_hidden_one_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = view.of_host()
    assert str(tmp_path) in found.shown and found.cwd == str(tmp_path)


def test_a_data_directory_under_a_hidden_one_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path))
    assert str(tmp_path) in view.of_host().shown


def test_thread_counts_follow_the_plan_and_the_topology_wins() -> None:
    node = NodePlan("n", threads=3, env=(("MKL_NUM_THREADS", "9"), ("X", "y")))
    values = dict(view.environment(LabId("lab", Path("/s")), Plan("lab", (node,), (), time_scale=0.2), node))
    assert values["OMP_NUM_THREADS"] == values["OPENBLAS_NUM_THREADS"] == "3"
    assert values["MKL_NUM_THREADS"] == "9" and values["X"] == "y"
    assert values["EMU_LAB"] == "lab" and values["EMU_NODE"] == "n" and values["EMU_TIME_SCALE"] == "0.2"


def test_the_hosts_file_starts_with_localhost() -> None:
    assert rootfs.hosts_file((("a", "10.0.0.1"),)) == "127.0.0.1\tlocalhost\n10.0.0.1\ta\n"


def test_the_set_of_capabilities_is_dockers() -> None:
    from emulator.core.linux import CAPABILITIES

    assert sum(1 << CAPABILITIES[name] for name in namespaces.CAPABILITIES) == 0xA80425FB
