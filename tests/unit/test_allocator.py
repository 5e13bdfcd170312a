"""A process that keeps freed memory does not fault it in again."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource, sys
if sys.argv[1] == "keep":
    from emulator.core.allocator import keep_freed_memory
    assert keep_freed_memory()
def once():
    blocks = [b"x" * (8 << 20) for _ in range(16)]
once()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    once()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_that_was_freed_is_used_again_without_a_fault() -> None:
    assert faults("keep") < 100
    assert faults("as it is") > 1000
