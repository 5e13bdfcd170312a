"""What every test may use: `needs(...)`, which skips by name, or fails where EMU_REQUIRE says the machine has it."""

from __future__ import annotations

import os
import shutil
import signal
from functools import cache
from pathlib import Path

import pytest

# A test that names no runtime means the same on every machine, also where an engine has emu's images.
os.environ.setdefault("EMU_RUNTIME", "embedded")
# A shell's background job is born deaf to Ctrl-C, and so are its children: here they hear it all the same.
signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def _has(name: str) -> bool:
    if name == "root":
        return os.geteuid() == 0
    if name == "netns":
        return _has("root") and os.system("unshare -n true 2>/dev/null") == 0
    if name == "tun":
        return _has("netns") and os.access("/dev/net/tun", os.R_OK | os.W_OK)
    if name == "cgroup":
        return _has("root") and (Path("/sys/fs/cgroup/cpu").is_dir() or _has("cgroup2"))
    if name == "cgroup2":
        return _has("root") and Path("/sys/fs/cgroup/cgroup.controllers").is_file()
    if name == "overlay":
        return _has("root") and "overlay" in Path("/proc/filesystems").read_text()
    if name == "netem":
        probe = "unshare -n tc qdisc add dev lo root netem delay 1ms 2>/dev/null"
        return _has("netns") and os.system(probe) == 0
    if name == "docker":
        from emulator.core.processor import host_arch
        from emulator.runtimes.docker import engine, image

        return engine.is_there() and image.is_there(f"{image.PLAIN}:{host_arch()}")
    if name in ("docker-arm64", "docker-arm64-torch"):
        from emulator.runtimes.docker import engine, image

        ours = image.TRAINING if name.endswith("torch") else image.PLAIN
        return _has("qemu-aarch64") and engine.is_there() and image.is_current(f"{ours}:arm64")
    if name == "qemu-aarch64":
        from emulator.runtimes import binfmt

        return binfmt.host_arch() != "arm64" and not binfmt.problems("arm64")
    if name == "aarch64-gcc":
        return shutil.which("aarch64-linux-gnu-gcc") is not None
    if name == "buildx":
        return _has("docker") and os.system("docker buildx version >/dev/null 2>&1") == 0
    if name == "hpl":
        return all(shutil.which(tool) for tool in ("mpirun", "mpicc", "apt-get"))
    if shutil.which(name):
        return True
    if name in ("npm", "ping", "iperf3", "dockerd", "busybox", "podman", "catatonit"):
        return False
    raise ValueError(f"no test knows the need {name!r}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = set(os.environ.get("EMU_REQUIRE", "").split(","))
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if not _has(name):
                if name in required:
                    pytest.fail(f"needs {name}, which EMU_REQUIRE says this machine has")
                pytest.skip(f"needs {name}")
