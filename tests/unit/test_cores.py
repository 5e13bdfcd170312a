"""Which cores an ARM host has, as its kernel shows them, and the note where a device's core is another."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.devices import cores
from emulator.topology import notes
from emulator.topology.settle import Settled

PI_4 = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\n"
BIG_LITTLE = PI_4.replace("0xd08", "0xd03") + "\n" + PI_4
APPLE = PI_4.replace("0x41", "0x61").replace("0xd08", "0x022")
X86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PI_4 + "\n" + PI_4, ("cortex-a72",)),
        (BIG_LITTLE, ("cortex-a53", "cortex-a72")),
        (APPLE, ("an ARM core 0x61/0x022",)),
        (X86, ()),
    ],
)
def test_the_cores_of_a_host(text: str, found: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert cores.of_host(tmp_path / "cpuinfo") == found


def test_a_device_with_another_core_than_the_hosts_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {
        "old": Settled({"device": "rpi-4", "arch": "arm64"}),
        "new": Settled({"device": "rpi-5", "arch": "arm64"}),
        "any": Settled({"device": "rpi-5"}),
        "bare": Settled({"arch": "arm64"}),
    }
    monkeypatch.setattr(cores, "of_host", lambda: ("cortex-a72",))
    assert list(notes._other_core(nodes)) == [
        "new: the device's core is cortex-a76, and programs run on this host's cortex-a72, "
        "which may take instructions that the device does not"
    ]
    monkeypatch.setattr(cores, "of_host", lambda: ())
    assert list(notes._other_core(nodes)) == []
