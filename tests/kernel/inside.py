"""Runs inside the test kernel: the halves of the suites that need it, then a lab's life from the command line.

Left out: what needs packets to be sent at Mbit/s, evenly or at once, which an emulated processor cannot do.
tests/kernel/test_netem.py has the same facts at a slower pace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: what Debian's stock kernel must have; a skip for want of it is a failure
REQUIRED = "root,netns,netem,cgroup,cgroup2,overlay"
SUITES = (
    "tests/kernel/test_netem.py",
    "tests/conformance/test_links.py",
    "tests/conformance/test_impairments.py",
    "tests/conformance/test_runtimes.py",
    "tests/integration/test_dead_node.py",
)
PACED = "rate_holds_in_every_second or packets_in_flight_do_not_fill or queue_is_bounded_and_what_finds"
CHOSEN = f"(netem or embedded) and not ({PACED})"
LAB = "kernel-smoke"
#: milliseconds that an emulated processor on a busy host may be late
SLACK = "60"


def main() -> int:
    """The exit code of the first step that fails, or 0."""
    os.environ |= {"EMU_REQUIRE": REQUIRED, "EMU_SLACK_MS": SLACK, "PYTHONUNBUFFERED": "1"}
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/tmp/hypothesis"
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=5", "-k", CHOSEN]
    for step in [[*pytest, *SUITES], *smoke()]:
        print("+", " ".join(step), flush=True)
        code = subprocess.run(step, check=False).returncode
        if code:
            print(f"that failed with exit code {code}", flush=True)
            return code
    return 0


def smoke() -> list[list[str]]:
    """A lab up on netem, a ping through it, and down again."""
    emu = str(Path(sys.executable).with_name("emu"))
    return [
        [emu, "up", "tests/kernel/lan-4.yaml", "--link-driver", "netem"],
        [emu, "exec", "--lab", LAB, "worker-1", "--", "ping", "-c", "3", "-i", "0.2", "worker-2"],
        [emu, "down", LAB],
        [
            "sh",
            "-c",
            "! ip -o link | grep -v ' lo' && ! grep emu /proc/self/mountinfo | grep -v -e emu-host -e emu-lib",
        ],
    ]


if __name__ == "__main__":
    sys.exit(main())
