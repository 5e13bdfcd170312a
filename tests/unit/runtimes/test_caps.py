"""Caps as the kernel takes them, on cgroup version 1, 2 and both; and what is missing on a host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.core.errors import HostError
from emulator.core.plan import NodePlan
from emulator.core.units import Share, Size
from emulator.runtimes import caps, cgroups
from emulator.runtimes.cgroups import Hierarchies
from emulator.runtimes.embedded.probe import missing_controllers

V2 = Hierarchies({}, Path("/two"), frozenset({"cpu", "memory", "pids"}), Path("/two"))
V1 = Hierarchies(
    {name: Path("/one") / name for name in ("cpu", "cpuacct", "memory", "pids")}, None, frozenset(), Path("/one/pids")
)
NODE = NodePlan("n", host_cpus=Share(0.25), memory=Size((64 << 20) + 100), pids=77)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1.0, (10_000, 10_000)),
        (0.1, (1_000, 10_000)),
        (0.05, (1_000, 20_000)),
        (0.001, (1_000, 1_000_000)),
        (2.5, (25_000, 10_000)),
    ],
)
def test_the_quota_is_never_under_what_the_kernel_takes(share: float, expected: tuple[int, int]) -> None:
    assert caps.quota(share) == expected


def test_the_quota_is_the_share_within_a_thousandth() -> None:
    for share in (step / 1000 for step in range(2, 4000)):
        quota, period = caps.quota(share)
        assert quota >= 1000 and 10_000 <= period <= 1_000_000
        assert quota / period == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.0005])
def test_a_share_that_no_kernel_can_give_is_refused(share: float) -> None:
    with pytest.raises(HostError, match=r"the kernel's least is 0\.001"):
        caps.quota(share)


@pytest.mark.parametrize(("share", "expected"), [(0.25, 2500), (0.5, 4000), (1.9, 4000), (0.001, 1000)])
def test_a_tick_of_quota_may_be_used_later_but_never_more_than_the_quota(
    share: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "TICK", 0.004)
    assert caps.burst(share) == expected
    node = replace(NODE, host_cpus=Share(share))
    for hierarchies, file in ((V1, "cpu.cfs_burst_us"), (V2, "cpu.max.burst")):
        names = [name for _, name, _ in caps.settings(hierarchies, node)]
        assert (file, str(expected)) in [(name, value) for _, name, value in caps.settings(hierarchies, node)]
        assert names.index(file) > max(names.index(name) for name in names if "quota" in name or name == "cpu.max")


def test_time_that_is_worth_less_is_made_up_for_by_more_of_it() -> None:
    slow = replace(NODE, worth=0.8)
    assert ("cpu", "cpu.cfs_quota_us", "3125") in caps.settings(V1, slow)
    assert ("cpu", "cpu.max", "3125 10000") in caps.settings(V2, slow)


def test_version_1() -> None:
    assert caps.settings(V1, NODE) == [
        ("cpu", "cpu.cfs_period_us", "10000"),
        ("cpu", "cpu.cfs_quota_us", "2500"),
        ("cpu", "cpu.shares", "256"),
        ("cpu", "cpu.cfs_burst_us", "2500"),
        ("memory", "memory.limit_in_bytes", str(64 << 20)),
        ("memory", "memory.memsw.limit_in_bytes", str(64 << 20)),
        ("pids", "pids.max", "77"),
    ]


def test_version_2() -> None:
    assert caps.settings(V2, NODE) == [
        ("cpu", "cpu.max", "2500 10000"),
        ("cpu", "cpu.weight", "25"),
        ("cpu", "cpu.max.burst", "2500"),
        ("memory", "memory.max", str(64 << 20)),
        ("memory", "memory.swap.max", "0"),
        ("pids", "pids.max", "77"),
    ]


def test_a_node_without_a_memory_cap_has_none_set() -> None:
    assert caps.memory_settings(V1, 0) == []


def test_hierarchies_are_read_from_the_mount_table(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("pids io\n")
    table = (
        "31 22 0:28 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw\n"
        "32 31 0:29 / /one/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:30 / /one/memory rw,relatime - cgroup cgroup rw,memory\n"
        f"41 31 0:38 / {tmp_path} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    found = cgroups.detect(table)
    assert found.root("cpu") == found.root("cpuacct") == Path("/one/cpu,cpuacct")
    assert found.root("memory") == Path("/one/memory")
    assert found.root("pids") == tmp_path and found.is_v2("pids") and not found.is_v2("cpu")


def test_missing_controllers_are_named_with_the_remedy() -> None:
    bare = Hierarchies({"cpu": Path("/")}, None, frozenset(), Path("/"))
    (problem,) = missing_controllers(bare)
    assert str(problem).startswith("the cgroup controllers memory, pids are missing; mount them")


def test_nothing_is_missing_on_a_whole_host() -> None:
    whole = Hierarchies({}, Path("/tmp"), frozenset({"cpu", "memory", "pids"}), Path("/tmp"))
    assert missing_controllers(whole) == []


def test_cgroups_that_cannot_be_written_are_named() -> None:
    there = Path("/proc/self/no-such-cgroup")
    (problem,) = missing_controllers(Hierarchies({}, there, frozenset({"cpu", "memory", "pids"}), there))
    assert f"the cgroups at {there} cannot be written; in a container run it with --privileged" in str(problem)


def test_the_kernels_refusal_is_not_hidden_by_a_buffer(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="writing '1'"):
        cgroups.write("/dev/full", "1")
