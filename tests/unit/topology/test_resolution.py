"""What a file comes to: names, merges, lines, caps, notes."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from emulator.core.errors import TopologyError, UsageError
from emulator.core.plan import Plan, RoutePlan
from emulator.core.units import Delay, Rate, Size
from emulator.devices.speed import Speed
from emulator.topology import load_plan
from emulator.topology.paths import Paths
from tests.unit.topology.cluster import HOST, plan_of

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SHIPPED = sorted(TOPOLOGIES.glob("*.yaml"))


def test_a_count_names_its_nodes_and_groups_are_dealt_in_order() -> None:
    plan = plan_of(
        """
        groups: {fast: {uplink: fibre}, slow: {extends: fast, uplink: dsl, memory: 1 GiB}}
        nodes:
          core: {kind: router}
          worker: {group: {fast: 2, slow: 1}, device: rpi-4}
        links: [{from: worker-*, to: core}]
        """
    )
    assert [node.name for node in plan.machines] == ["worker-1", "worker-2", "worker-3"]
    assert [link.name for link in plan.links] == ["worker-1--core", "worker-2--core", "worker-3--core"]
    assert [link.preset for link in plan.links] == ["wpt-fibre", "wpt-fibre", "wpt-dsl"]
    assert [node.memory for node in plan.machines] == [Size(4 * 2**30), Size(4 * 2**30), Size(2**30)]


def test_defaults_then_groups_then_the_node_and_env_is_merged() -> None:
    plan = plan_of(
        """
        defaults: {device: rpi-3b, role: worker, env: {A: 1, B: x}}
        groups:
          base: {device: rpi-4, env: {B: y}}
          child: {extends: base, cpus: 2}
        nodes: {n: {group: child, env: {C: z}, command: "python3 -m http.server '80 80'", restart: always}}
        """
    )
    node = plan.node("n")
    assert (node.device, node.role, float(node.cpus)) == ("rpi-4", "worker", 2)
    assert dict(node.env) == {"A": "1", "B": "y", "C": "z"}
    assert node.command == ("python3", "-m", "http.server", "80 80")
    assert node.restart == "always"


def test_down_leads_to_the_node_that_names_the_preset() -> None:
    plan = plan_of(
        """
        nodes: {home: {uplink: dsl}, core: {kind: router}, other: {uplink: dsl}}
        links:
          - {from: home, to: core}
          - {from: core, to: other}
        """
    )
    first, second = plan.links
    assert (first.a_to_b.rate, first.b_to_a.rate) == (Rate(384e3), Rate(1.5e6))
    assert (second.a_to_b.rate, second.b_to_a.rate) == (Rate(1.5e6), Rate(384e3))
    assert first.a_to_b.delay == first.b_to_a.delay == Delay(0.025)
    assert "WebPageTest" in first.source


def test_a_link_lays_its_own_keys_over_the_uplink_or_begins_anew_with_a_preset() -> None:
    plan = plan_of(
        """
        nodes: {a: {uplink: {preset: cable, loss: 1 %}}, b: , c: {kind: router}}
        links:
          - {from: a, to: c, rtt: 10 ms, up: {delay: 9 ms}, down: 7 Mbit, mtu: 1400, overhead: 10}
          - {from: b, to: c, preset: lan, up: {rate: 10 Mbit, queue: 10 packets}, down: {queue: 8 ms}}
        """
    )
    a, b = plan.links
    assert (a.a_to_b.rate, a.b_to_a.rate) == (Rate(1e6), Rate(7e6))
    assert (a.a_to_b.delay, a.b_to_a.delay) == (pytest.approx(0.009), Delay(0.005))
    assert (a.a_to_b.loss, a.mtu, a.a_to_b.overhead) == (0.01, 1400, 10)
    assert (b.a_to_b.rate, b.a_to_b.queue, b.b_to_a.queue) == (Rate(10e6), Size(15380), Size(1e6)), (
        "with 38 bytes of overhead each"
    )
    assert b.a_to_b.overhead == 38
    assert plan.node("a").interfaces[0].mtu == 1400


def test_the_default_queue_holds_a_round_trip_of_the_longest_path() -> None:
    plan = plan_of(
        """
        nodes: {near: , far: , slow: , core: {kind: router}}
        links:
          - {from: near, to: core, rate: 100 Mbit, delay: 1 ms}
          - {from: far, to: core, rate: 1 Gbit, delay: 49 ms, jitter: 5 ms}
          - {from: slow, to: core, rate: 1 Mbit, delay: 1 ms}
        """
    )
    near, far, slow = plan.links
    # near -> far: 2 x (1 + 49 + 5) ms
    assert near.a_to_b.queue == pytest.approx(100e6 / 8 * 0.110, abs=1)
    assert far.a_to_b.queue == pytest.approx(1e9 / 8 * 0.110, abs=1)
    assert slow.a_to_b.queue == 64 * 1024


def test_a_ring_counts_the_longest_round_trip_of_the_ways_in_use() -> None:
    plan = plan_of(
        """
        nodes: {r: {count: 3, kind: router}, h: {count: 3}}
        links:
          - {from: r-*, to: r-*, rate: 1 Gbit, delay: 10 ms}
          - {from: h-1, to: r-1, rate: 1 Gbit, delay: 1 ms}
          - {from: h-2, to: r-2, rate: 1 Gbit, delay: 1 ms}
          - {from: h-3, to: r-3, rate: 1 Gbit, delay: 1 ms}
        """
    )
    assert plan.link("r-1--r-2").a_to_b.queue == pytest.approx(1e9 / 8 * 0.024, abs=1)
    assert [step.end for step in Paths(plan).between("h-1", "h-2")] == ["r-1", "r-2", "h-2"]


def test_caps_follow_the_device_the_host_and_the_time_scale() -> None:
    text = "nodes: {pi: {device: rpi-4}, half: {device: rpi-4, cpus: 0.5}, s: {kind: switch}}\n"
    text += "links: [{from: [pi, half], to: s, preset: lan}]"
    plan = plan_of(text)
    assert plan.node("pi").host_cpus == pytest.approx(0.4)
    assert (plan.node("pi").threads, plan.node("pi").gflops) == (1, pytest.approx(15.8))
    assert plan.node("half").host_cpus == pytest.approx(0.05)
    fast = plan_of(text, time_scale=0.2)
    assert fast.node("pi").host_cpus == pytest.approx(2.0)
    assert (fast.node("pi").threads, fast.node("half").threads) == (2, 1)
    assert fast.node("pi").gflops == pytest.approx(15.8)
    assert not any("slower" in note for note in fast.notes)


def test_a_node_that_needs_more_than_the_host_is_noted_with_its_factor() -> None:
    plan = plan_of("nodes: {pi: {device: rpi-4}}", time_scale=0.05)
    assert plan.node("pi").host_cpus == 4
    assert plan.node("pi").threads == 4
    assert "pi: 2 times slower than asked (at time scale 0.05 each needs 8 host cores" in plan.notes[0]
    assert "time scale 0.1 would do" in plan.notes[0]
    assert not any("slower" in note for note in plan_of("nodes: {pi: {device: rpi-4}}", time_scale=0.1).notes)


@pytest.mark.parametrize(
    ("calibrate", "cores", "by"),
    [
        ("auto", 15.8 / 39.5, "calibrated by sgemm: 3.95 of 39.5 GFLOPS"),
        ("linpack", 11.889 / 20, "calibrated by linpack: 2.97 of 20 GFLOPS"),
        ("0.25", 1.0, "calibrated by 0.25: as the file says"),
    ],
)
def test_a_node_is_calibrated_by_what_the_file_says(calibrate: str, cores: float, by: str) -> None:
    host = replace(HOST, known={"dgemm": Speed.plain(20e9, HOST.cores)})
    plan = plan_of(f"defaults: {{calibrate: {calibrate}}}\nnodes: {{pi: {{device: rpi-4}}}}", host=host)
    assert plan.node("pi").host_cpus == pytest.approx(cores)
    assert plan.node("pi").gflops == pytest.approx(cores * HOST.gflops)
    assert any(by in note for note in plan.notes)


def test_a_node_of_many_threads_and_a_busy_host_get_more_cores_for_the_same_speed() -> None:
    """Two cores do 60 instead of 80 GFLOPS where each is busy, and one program with two threads only 54."""
    host = replace(HOST, cores=2, known={"sgemm": Speed("FLOP/s", 40e9, 30e9, 54e9)})
    alone = plan_of("nodes: {pi: {device: rpi-4}}", host=host)
    assert alone.node("pi").host_cpus == pytest.approx(15.8 / 40), "one thread on an idle host"
    fast = plan_of("nodes: {pi: {device: rpi-4}}", host=host, time_scale=0.3)
    assert fast.node("pi").host_cpus == pytest.approx(15.8 / 0.3 / 27), "two threads"
    many = plan_of("nodes: {pi: {count: 6, device: rpi-4}, s: {kind: switch}}\nlinks: [{from: pi-*, to: s}]", host=host)
    assert many.node("pi-1").host_cpus == pytest.approx(15.8 / 30), "one thread among busy cores"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "{device: rpi-4, calibrate: speed}",
            "file.yaml:1: `calibrate`: 'speed' is no basis of calibration; write",
        ),
        ("{device: rpi-4, calibrate: 0}", "`calibrate`: a device core cannot be worth 0.0 host cores; write 0.0001"),
        ("{device: rpi-4, calibrate: -2}", "cannot be worth -2.0"),
        ("{device: rpi-4, calibrate: .nan}", "cannot be worth nan"),
        ("{device: rpi-4, calibrate: true}", "True is no basis"),
        ("{device: rpi-4, calibrate: [linpack]}", "is no basis"),
        ("{device: rpi-4, calibrate: 'train:'}", "'train:' is no basis"),
        (
            "{device: rpi-4, calibrate: 'train:vgg'}",
            "file.yaml:1: node 'pi': there is no reference model 'vgg' .*; use one of",
        ),
        ("{device: rpi-3b, calibrate: linpack}", "file.yaml:1: node 'pi': .*rpi-3b has no LINPACK figure"),
        ("{kind: switch, calibrate: auto}", "a switch has no `calibrate`"),
    ],
)
def test_a_basis_that_cannot_be_is_told(text: str, told: str) -> None:
    with pytest.raises(TopologyError, match=told):
        plan_of(f"nodes: {{pi: {text}}}")


X86 = replace(HOST, arch="amd64")
BOARDS = """
    groups: {own: {device: rpi-4, arch: amd64}}
    nodes: {pi: {device: rpi-4}, fixed: {group: own}, s: {device: server}, hub: {kind: switch}}
    links: [{from: "*", to: hub, preset: lan}]
"""


@pytest.mark.parametrize("time_scale", [0.01, 1.0, 20.0])
def test_programs_of_another_processor_get_whole_cores_and_the_share_is_kept(time_scale: float) -> None:
    plan = plan_of("nodes: {pi: {device: rpi-4, arch: arm64}}", host=X86, time_scale=time_scale)
    node = plan.node("pi")
    assert node.foreign
    assert float(node.host_cpus) == node.threads == (4 if time_scale == 0.01 else 1)
    assert node.step_cpus == pytest.approx(0.4 / time_scale), "the device's worth, also where the host has less"
    assert (node.gflops, node.cpu_model) == (pytest.approx(15.8), "cortex-a72")
    assert "pi: in containers QEMU runs the arm64 programs, so CPU caps are lifted to whole cores" in plan.notes[0]
    assert Plan.from_json(plan.to_json()) == plan


def test_on_its_own_processor_nothing_is_lifted() -> None:
    plan = plan_of("nodes: {pi: {device: rpi-4, arch: arm64}}", host=replace(HOST, arch="arm64"))
    assert plan.node("pi") == replace(plan_of("nodes: {pi: {device: rpi-4}}").node("pi"), arch="arm64")
    assert (plan.node("pi").foreign, plan.node("pi").step_cpus) == (False, pytest.approx(0.4))
    assert not any("QEMU" in note for note in plan.notes)


def test_an_arch_asked_for_is_that_of_boards_that_name_none() -> None:
    def archs(arch: str | None) -> list[str]:
        return [node.arch for node in plan_of(BOARDS, host=X86, arch=arch).machines]

    assert archs(None) == ["", "amd64", ""]
    assert archs("arm64") == ["arm64", "amd64", ""], "a server is no ARM board"
    assert archs("amd64") == ["amd64", "amd64", "amd64"]


def test_an_arch_without_effect_says_so_and_an_unknown_one_is_refused() -> None:
    plan = plan_of("nodes: {a: }", host=X86, arch="arm64")
    assert plan.notes[-1] == "--arch arm64 has no effect: every machine names its own arch, or is no ARM board"
    with pytest.raises(UsageError, match=r"--arch: 'arm' is not a processor of nodes; use amd64 or arm64"):
        plan_of(BOARDS, arch="arm")


def test_a_server_is_not_limited_and_says_so() -> None:
    plan = plan_of("nodes: {a: }", time_scale=0.5)
    node = plan.node("a")
    assert (node.device, node.host_cpus, node.threads, node.memory) == ("server", 4, 4, HOST.memory)
    assert node.gflops == pytest.approx(4 * 39.5 * 0.5)
    assert plan.notes == ("a: not limited beyond this host (4 cores)",)


def test_notes_tell_what_was_assumed() -> None:
    plan = plan_of(
        """
        nodes: {a: {count: 40, device: rpi-4, restart: always}, s: {kind: switch}}
        links: [{from: a-*, to: s}]
        """
    )
    text = "\n".join(plan.notes)
    assert "ask for 16.0 host cores, and this host has 4" in text
    assert "memory adds up to 160.0 GiB" in text
    assert "a-1--s, a-2--s, a-3--s and 37 more: 1 Gbit/s, for the network port of rpi-4 is no faster" in text
    assert "s: too many neighbours to set" in text
    assert "`restart` has no effect without a `command`" in text


def test_a_host_with_one_way_out_has_one_route_and_a_segment_knows_its_neighbours() -> None:
    plan = load_plan(TOPOLOGIES / "two-sites.yaml", host=HOST)
    gate = next(item.address for item in plan.node("gate-a").interfaces if item.name == "to-switch-a")
    assert gate is not None
    server = plan.node("server")
    (supernet,) = {route.destination for route in server.routes}
    assert server.routes == (RoutePlan(supernet, gate.ip, "eth0"),)
    assert supernet.prefixlen == 16
    assert {item.address for item in server.interfaces[0].neighbours} == {
        item.address.ip for name in ("a-1", "a-2", "a-3") for item in plan.node(name).interfaces if item.address
    } | {gate.ip}
    assert len(plan.node("gate-a").routes) == 1
    assert plan.node("switch-a").address is None


def test_interface_names_are_readable_and_short() -> None:
    plan = plan_of(
        """
        nodes: {core: {kind: router}, "a-node-with-quite-a-long-name": {count: 2}, b: }
        links: [{from: [a-*, b], to: core}]
        """
    )
    names = [item.name for item in plan.node("core").interfaces]
    assert names[2] == "to-b"
    assert all(name.startswith("to-a-node-") and len(name) <= 15 for name in names[:2])
    assert names[0] != names[1]
    assert [item.name for item in plan.node("b").interfaces] == ["eth0"]


def test_parallel_links_need_names_and_the_shorter_one_is_taken() -> None:
    plan = plan_of(
        """
        nodes: {a: , b: }
        links:
          - {from: a, to: b, delay: 5 ms, name: slow}
          - {from: a, to: b, delay: 1 ms, name: fast}
        """
    )
    paths = Paths(plan)
    assert [step.link.name for step in paths.between("a", "b")] == ["fast"]
    assert paths.round_trip("a", "b") == Delay(0.002)


def test_arguments_go_before_the_file() -> None:
    text = "name: x\nseed: 3\ntime_scale: 0.5\nnodes: {a: }"
    plan = plan_of(text)
    assert (plan.name, plan.seed, plan.time_scale) == ("x", 3, 0.5)
    plan = plan_of(text, name="y", seed=0, time_scale=2)
    assert (plan.name, plan.seed, plan.time_scale) == ("y", 0, 2.0)


def test_the_name_of_a_file_becomes_a_lab_name(tmp_path: Path) -> None:
    path = tmp_path / "My Lab_2.yaml"
    path.write_text("nodes: {a: }")
    assert load_plan(path, host=HOST).name == "my-lab-2"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_topology_resolves_and_survives_json(path: Path) -> None:
    assert path.read_text().startswith("# ")
    plan = load_plan(path, host=HOST)
    assert plan.name == path.stem
    assert Plan.from_json(plan.to_json()) == plan
    if path.stem != "linpack-4":  # its nodes run MPI programs, not roles
        roles = [node.role for node in plan.machines]
        assert roles.count("parameter_server") == 1
        assert roles.count("worker") == len(roles) - 1 >= 2
    paths = Paths(plan)
    for node in plan.machines:
        for peer in plan.machines:
            assert node == peer or paths.between(node.name, peer.name)


def test_wan_10_is_what_its_comment_says() -> None:
    plan = load_plan(TOPOLOGIES / "wan-10.yaml", host=HOST)
    presets = [link.preset for link in plan.links if link.a.node.startswith("worker")]
    assert presets == ["wpt-fibre"] * 3 + ["wpt-cable"] * 3 + ["wpt-dsl"] * 2 + ["sitespeed-4g"] * 2
    assert {node.device for node in plan.machines if node.role == "worker"} == {"rpi-4"}
    assert Paths(plan).round_trip("worker-10", "server") == pytest.approx(0.087)
    assert dict(plan.hosts)["server"] == plan.node("server").address
    assert all(isinstance(address, IPv4Address) for _, address in plan.hosts)


def test_lan_4_is_four_boards_on_a_gigabit_switch() -> None:
    plan = load_plan(TOPOLOGIES / "lan-4.yaml", host=HOST)
    assert [node.device for node in plan.machines] == ["rpi-4"] * 4
    assert {link.a_to_b.rate for link in plan.links} == {Rate(1e9)}
    networks = {item.address.network for node in plan.machines for item in node.interfaces if item.address}
    assert len(networks) == 1
    assert networks.pop().subnet_of(IPv4Network("10.0.0.0/8"))


def test_memory_that_is_asked_for_adds_up_also_without_cpus() -> None:
    link = "links: [{from: a, to: b}]"
    both = plan_of("nodes: {a: {memory: 10 GiB}, b: {memory: 10 GiB}}\n" + link)
    assert "the nodes' memory adds up to 20.0 GiB, and this host has 16.0 GiB" in both.notes
    assert not any("adds up" in note for note in plan_of("nodes: {a: , b: }\n" + link).notes)
