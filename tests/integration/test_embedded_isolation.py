"""A node of the embedded runtime cannot see or touch its host, its neighbours, or more than its caps."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.lab_id import LabId
from emulator.core.units import Size
from tests.runtime_world import World, make_runtime, plan_of

pytestmark = pytest.mark.needs("root", "netns", "cgroup", "overlay")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMU_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        name = f"iso-{os.getpid()}-{next(_numbers)}"
        made = World(make_runtime("embedded"), LabId.of(name), plan_of(name))
        made.create()
        yield made
        made.runtime.remove(made.lab)


def sh(world: World, script: str, node: str = "alpha") -> tuple[int, str]:
    return world.run(node, ["sh", "-c", f"exec 2>&1; {script}"])


def python(world: World, code: str, node: str = "alpha") -> tuple[int, str]:
    return world.run(node, ["sh", "-c", 'exec "$0" -c "$1" 2>&1', sys.executable, code])


def test_it_sees_only_its_own_processes(world: World) -> None:
    status, text = sh(world, "ls /proc | grep -c '^[0-9]'")
    assert status == 0 and int(text) <= 6
    assert sh(world, "cat /proc/1/comm")[1] == "emu-init alpha\n"


def test_it_sees_only_its_own_interfaces(world: World) -> None:
    for listing in ("cat /proc/net/dev", "ls /sys/class/net"):
        _, text = sh(world, listing)
        assert "lo" in text
        names = set(os.listdir("/sys/class/net")) - {"lo"}
        assert not any(name in text.split() or f"{name}:" in text for name in names)
    assert python(world, "import socket; socket.create_connection(('10.255.255.1', 9), 1)")[0] != 0


def test_it_cannot_write_the_hosts_files(world: World) -> None:
    target = Path("/etc/emu-isolation-test")
    assert sh(world, f"echo x > {target} && cat {target}") == (0, "x\n")
    assert not target.exists()
    assert sh(world, f"cat {target}", node="beta")[0] != 0, "a file of one node is seen in another"


def test_secrets_and_other_labs_are_hidden(world: World, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("secret")
    assert sh(world, f"cat {tmp_path}/note")[0] != 0
    assert sh(world, "wc -c < /etc/shadow")[1].strip() == "0"
    assert sh(world, f"ls {world.lab.directory}")[0] != 0
    assert sh(world, "find /home /run /tmp /root -xdev -type f") == (0, "")


def test_the_interpreter_and_the_package_are_usable_and_read_only(world: World) -> None:
    status, text = python(world, "import emulator, sys; print(emulator.__file__, sys.prefix)")
    assert status == 0 and sys.prefix in text
    base = Path(sys.base_prefix)
    if base.is_relative_to("/root") or base.is_relative_to("/home"):
        assert "Read-only" in sh(world, f"touch {base}/emu-isolation-test")[1]
    assert not (base / "emu-isolation-test").exists()


@pytest.mark.parametrize(
    "script",
    [
        "mount -t tmpfs none /mnt",
        "mount -o remount,rw /sys",
        "umount /proc/sys",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo b > /proc/sysrq-trigger",
        "echo x > /sys/kernel/mm/transparent_hugepage/enabled",
        "hostname other",
        "ip link add dummy0 type dummy",
        "insmod /dev/null",
        "chroot /proc/1/root true",
        "nsenter -t 1 -m true",
        "touch /dev/emu-test",
        "kill -9 1; sleep 0.1; cat /proc/1/comm | grep -v emu-init",
        "dmesg",
    ],
)
def test_it_cannot(world: World, script: str) -> None:
    status, text = sh(world, script)
    assert status != 0, text


def test_no_disk_can_be_reached_by_a_device_node(world: World) -> None:
    code = (
        "import os, stat\n"
        "for place in ('/tmp', '/root', '/dev/shm', '/'):\n"
        "    path = place + '/zero'\n"
        "    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))\n"
        "    try:\n"
        "        os.open(path, os.O_RDONLY)\n"
        "    except PermissionError:\n"
        "        continue\n"
        "    raise SystemExit(place)\n"
    )
    assert python(world, code) == (0, "")


def test_only_harmless_devices_are_there(world: World) -> None:
    _, text = sh(world, "ls /dev")
    assert set(text.split()) == {
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"
    }  # fmt: skip
    assert sh(world, "head -c 4 /dev/urandom | wc -c; echo x > /dev/null; echo y > /dev/shm/y; cat /dev/shm/y")[0] == 0


def test_it_holds_dockers_default_capabilities_and_can_gain_none(world: World) -> None:
    _, text = sh(world, "cat /proc/self/status")
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    for kind in ("CapPrm", "CapEff", "CapBnd"):
        assert int(fields[kind], 16) == 0xA80425FB, kind
    assert fields["NoNewPrivs"] == "1"


def test_pid_1_cannot_be_traced_or_read(world: World) -> None:
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "assert libc.ptrace(16, 1, 0, 0) == -1\n"
        "for name in ('fd/0', 'fd/1', 'root', 'cwd', 'ns/mnt'):\n"
        "    try:\n"
        "        os.readlink('/proc/1/' + name)\n"
        "    except PermissionError:\n"
        "        continue\n"
        "    raise SystemExit(name)\n"
        "try:\n"
        "    os.open('/proc/1/mem', os.O_RDONLY)\n"
        "except PermissionError:\n"
        "    raise SystemExit(0)\n"
        "raise SystemExit('mem')\n"
    )
    assert python(world, code) == (0, "")


def test_no_descriptor_of_the_caller_comes_along(world: World, tmp_path: Path) -> None:
    with (tmp_path / "mine").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        status, text = sh(world, "ls /proc/self/fd")
    assert status == 0
    assert set(text.split()) <= {"0", "1", "2", "3"}
    with (tmp_path / "given").open("w") as file:
        world.run(
            "alpha", [sys.executable, "-c", f"import os; os.write({file.fileno()}, b'hi')"], inherit=(file.fileno(),)
        )
    assert (tmp_path / "given").read_text() == "hi"


def test_processes_beyond_the_cap_are_refused(world: World) -> None:
    code = (
        "import os, signal\n"
        "made = []\n"
        "while len(made) < 200:\n"
        "    try:\n"
        "        pid = os.fork()\n"
        "    except BlockingIOError:\n"
        "        break\n"
        "    if pid == 0:\n"
        "        signal.pause()\n"
        "    made.append(pid)\n"
        "print(len(made))\n"
        "for pid in made:\n"
        "    os.kill(pid, 9)\n"
    )
    status, text = python(world, code)
    assert status == 0 and 55 <= int(text) < 64, "the cap is 64, with pid 1 and the program itself"


def test_memory_beyond_the_cap_is_an_oom_kill_that_is_counted(world: World) -> None:
    before = world.runtime.usage(world.lab, ["beta"])["beta"]
    assert python(world, "x = bytearray(400 << 20); print(len(x))", node="beta")[0] == -9
    after = world.runtime.usage(world.lab, ["beta"])["beta"]
    assert after.oom_kills > before.oom_kills
    assert 200 << 20 <= after.memory_peak <= 257 << 20
    assert after.running, "the node's pid 1 must survive its programs"
    assert python(world, "x = bytearray(150 << 20)", node="beta")[0] == 0


def test_shared_pages_lower_the_cap(world: World) -> None:
    world.runtime.charge_shared(world.lab, "beta", Size(150 << 20))
    try:
        assert python(world, "x = bytearray(150 << 20)", node="beta")[0] == -9
    finally:
        world.runtime.charge_shared(world.lab, "beta", Size(0))
    assert python(world, "x = bytearray(150 << 20)", node="beta")[0] == 0
