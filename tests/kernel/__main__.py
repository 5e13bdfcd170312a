"""`make test-kernel`: what this host's kernel may lack (netem, cgroup v2) tested on Debian's stock kernel in a VM.

`python -m tests.kernel [COMMAND...]` boots it with virtme-ng over the host's own files (read-only) and runs
tests/kernel/inside.py, or COMMAND, as root. No KVM is needed, so everything takes 10 to 30 times longer than on the
host. The exit code is the command's; 124 after the time limit.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from emulator.core.errors import EmuError, HostError
from tests.kernel.image import kernel

CHECKOUT = Path(__file__).resolve().parents[2]
GUEST = Path(__file__).with_name("guest.sh")
TIMED_OUT = 124
#: packages of Debian that hold what booting needs
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "zstd": "zstd",
    "depmod": "kmod",
    "udevadm": "udev",  # without it the VM does not find the ports by which its program is told and heard
}
_EXIT = re.compile(r"^emu-kernel-exit (\d+)\s*$")


def main(arguments: list[str]) -> int:
    """Boot, run, and give back the exit code; one sentence where it cannot be done."""
    command = arguments or [sys.executable, "-m", "tests.kernel.inside"]
    limit = float(os.environ.get("EMU_KERNEL_TIMEOUT", "900"))
    try:
        return boot(kernel(), command, limit)
    except EmuError as error:
        print(f"make test-kernel: {error}", file=sys.stderr)
        return error.exit_code


def boot(image: Path, command: list[str], limit: float) -> int:
    """Run `command` in the VM with its output on ours; gives up after `limit` seconds. Raises HostError."""
    print(f"booting {image.name} (no KVM needed; at most {limit:.0f} s)", flush=True)
    process = subprocess.Popen(
        _vng(image, command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        code = _follow(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        ended = process.wait()
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    if code is not None:
        return code
    if left == 0:
        print(f"the VM was ended after {limit:.0f} s (raise EMU_KERNEL_TIMEOUT, or see where it hangs)", flush=True)
        return TIMED_OUT
    raise HostError(
        f"the VM ended ({ended}) before its command did", where=image.name, fix="read what it printed above"
    )


def _follow(process: subprocess.Popen[str]) -> int | None:
    """Print what the VM prints; the command's exit code, as the guest tells it."""
    code = None
    assert process.stdout is not None
    for line in process.stdout:
        found = _EXIT.match(line)
        if found:
            code = int(found[1])
        else:
            print(line, end="", flush=True)
    return code


def _vng(image: Path, command: list[str]) -> list[str]:
    vng = shutil.which("vng", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if vng is None:
        raise HostError("virtme-ng is not installed", fix="run `make setup`, or `pip install virtme-ng`")
    for tool, package in TOOLS.items():
        if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            raise HostError(f"{tool} is not installed", fix=f"install it with `apt-get install {package}`")
    share = "local,path=/,mount_tag=emu-host,security_model=none,readonly=on,multidevs=remap"
    words = ["sh", str(GUEST), str(CHECKOUT), *command]
    return [
        *(vng, "--run", str(image), "--disable-kvm", "--force-9p", "--user", "root", "--memory", "2G", "--cpus", "2"),
        *(f"--qemu-opts=-virtfs {share}", "--", shlex.join(words)),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
