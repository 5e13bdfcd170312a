"""What a node is shown of its machine, in the kernel's formats."""

from __future__ import annotations

from dataclasses import replace

from emulator.core.plan import NodePlan
from emulator.core.processor import host_arch
from emulator.core.units import Share
from emulator.runtimes import identity

HOST = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC
cpu MHz\t\t: 2445.426
physical id\t: 0
siblings\t: 2
core id\t\t: 0
cpu cores\t: 2
apicid\t\t: 0
flags\t\t: fpu avx2

processor\t: 1
model name\t: AMD EPYC
flags\t\t: fpu avx2

"""
BOARD = NodePlan(
    "n", cpus=Share(4), host_cpus=Share(0.5), machine="Raspberry Pi 4 Model B", clock=1.5e9, cpu_model="cortex-a72"
)


def _values(text: str, key: str) -> list[str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def test_a_board_has_its_own_cores_name_and_clock_and_the_hosts_instruction_set() -> None:
    shown = identity.machine(BOARD, HOST)
    assert shown is not None and shown.processors == "0-3"
    assert _values(shown.cpuinfo, "processor") == _values(shown.cpuinfo, "core id") == ["0", "1", "2", "3"]
    assert set(_values(shown.cpuinfo, "model name")) == {"Raspberry Pi 4 Model B (emulated by emu on AMD EPYC)"}
    assert set(_values(shown.cpuinfo, "cpu MHz")) == {"1500.000"}
    assert set(_values(shown.cpuinfo, "cpu cores")) == set(_values(shown.cpuinfo, "siblings")) == {"4"}
    assert _values(shown.cpuinfo, "flags") == ["fpu avx2"] * 4 and _values(shown.cpuinfo, "vendor_id")


def test_a_node_with_part_of_a_core_has_one_and_a_server_is_this_host() -> None:
    part = identity.machine(replace(BOARD, cpus=Share(0.3)), HOST)
    assert part is not None and part.processors == "0"
    assert identity.machine(replace(BOARD, machine=""), HOST) is None
    assert identity.machine(replace(BOARD, cpus=Share(0)), HOST) is None


def test_programs_for_another_processor_are_shown_the_boards_own_core() -> None:
    other = "arm64" if host_arch() != "arm64" else "amd64"
    shown = identity.machine(replace(BOARD, arch=other), HOST)
    assert shown is not None and _values(shown.cpuinfo, "CPU part") == ["0xd08"] * 4
    assert _values(shown.cpuinfo, "Features")[0].split()[:2] == ["fp", "asimd"]
    assert _values(shown.cpuinfo, "Model") == ["Raspberry Pi 4 Model B"]
    unknown = identity.machine(replace(BOARD, arch=other, cpu_model="unheard-of"), HOST)
    assert unknown is not None and unknown.cpuinfo == HOST


def test_no_processor_is_promised_more_than_it_has_while_another_is_free() -> None:
    def node(name: str, share: float, cpus: float = 1) -> NodePlan:
        return replace(BOARD, name=name, cpus=Share(cpus), host_cpus=Share(share))

    found = identity.affinities([node("a", 0.6), node("b", 0.9), node("c", 0.3), node("d", 0.1, 4)], [0, 1])
    assert found["a"] == found["c"] != found["b"]
    assert "d" not in found, "a board with as many cores as the host may use all"
    assert identity.affinities([node("a", 0.6, 2)], range(8))["a"] == (0, 1)


def test_meminfo_adds_up() -> None:
    lines = dict(line.split(":") for line in identity.meminfo(1 << 30, 300 << 20, 100 << 20, 20 << 20).splitlines())
    kib = {key: int(value.split()[0]) for key, value in lines.items()}
    assert kib["MemTotal"] == 1 << 20 and kib["MemFree"] == 724 << 10
    assert kib["MemAvailable"] == 824 << 10 and kib["Cached"] == 120 << 10 and kib["SwapTotal"] == 0


def test_stat_counts_every_processor_and_never_changes_its_length() -> None:
    text = identity.stat(4, busy=8.0, up=100.0, boot=12345)
    rows = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    assert [row[0] for row in rows] == ["cpu", "cpu0", "cpu1", "cpu2", "cpu3"]
    assert int(rows[0][1]) == 800 and int(rows[1][1]) == 200
    assert int(rows[0][1]) + int(rows[0][4]) == 4 * 100 * 100
    assert "btime 12345" in text
    assert len(identity.stat(4, 1e6, 1e7, 12345)) == len(text)
