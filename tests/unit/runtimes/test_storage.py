"""A card's speed as the kernel takes it, and where no cap on it would hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from emulator.core.plan import NodePlan, Plan, StoragePlan
from emulator.runtimes import storage
from emulator.runtimes.cgroups import Hierarchies
from emulator.runtimes.storage import Disk

V1 = Hierarchies({"blkio": Path("/one/blkio")}, None, frozenset(), Path("/one/pids"))
V2 = Hierarchies({}, Path("/two"), frozenset({"cpu", "memory", "pids", "io"}), Path("/two"))
BARE = Hierarchies({"cpu": Path("/one/cpu")}, None, frozenset(), Path("/one/pids"))
NODE = NodePlan("n", storage=StoragePlan(read=40e6, write=20e6, read_operations=3000))


def test_version_1_leaves_out_what_is_not_known() -> None:
    assert storage.of_node(V1, NODE, Disk("8:0"), 1.0) == [
        ("blkio", "blkio.throttle.read_bps_device", "8:0 40000000"),
        ("blkio", "blkio.throttle.write_bps_device", "8:0 20000000"),
        ("blkio", "blkio.throttle.read_iops_device", "8:0 3000"),
    ]


def test_version_2_says_so_of_what_is_not_known() -> None:
    line = "8:0 rbps=40000000 wbps=20000000 riops=3000 wiops=max"
    assert storage.of_node(V2, NODE, Disk("8:0"), 1.0) == [("io", "io.max", line)]


def test_a_card_is_slower_by_the_time_scale_and_never_stands_still() -> None:
    (setting,) = storage.of_node(V2, NODE, Disk("8:0"), 4.0)
    assert setting[2] == "8:0 rbps=10000000 wbps=5000000 riops=750 wiops=max"
    (setting,) = storage.of_node(V2, replace(NODE, storage=StoragePlan(1.0, 1.0, 1.0, 1.0)), Disk("8:0"), 100.0)
    assert setting[2] == "8:0 rbps=1 wbps=1 riops=1 wiops=1"


def test_a_node_without_a_card_of_its_own_has_nothing_set_and_nothing_said() -> None:
    plain = NodePlan("n")
    assert storage.of_node(V1, plain, Disk("8:0"), 1.0) == []
    assert storage.note(plain, Disk(why="whatever")) == ""


def test_why_no_cap_would_hold(tmp_path: Path) -> None:
    for hierarchies, place, why in (
        (V1, None, "in memory"),
        (BARE, tmp_path, "no cgroup controller of disks"),
        (V1, Path("/proc"), "lies on no disk"),
    ):
        on = storage.disk(hierarchies, place)
        assert why in on.why and storage.note(NODE, on) == on.why
        assert storage.of_node(hierarchies, NODE, on, 1.0) == []


def test_a_partition_is_capped_by_its_disk(tmp_path: Path) -> None:
    number = Path("/").stat().st_dev
    disk = tmp_path / "devices" / "sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1" / "partition").write_text("1\n")
    links = tmp_path / "dev" / "block"
    links.mkdir(parents=True)
    (links / f"{number >> 8}:{number & 0xFF}").symlink_to(disk / "sda1")
    assert storage.disk(V1, Path("/"), sys=tmp_path) == Disk("8:0")


def test_a_plan_of_before_is_read_and_one_with_a_card_comes_back_equal() -> None:
    plan = Plan("lab", (NODE, NodePlan("m", machine="Board", clock=1e9, worth=0.9)), ())
    assert Plan.from_json(plan.to_json()) == plan
