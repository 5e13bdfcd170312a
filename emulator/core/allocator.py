"""Keeping freed memory, so that a training step costs the same every time.

glibc gives large blocks back to the kernel as soon as they are free, and adapts what it takes for large meanwhile: of
the same step of MnasNet on one core, 0 to 0.5 s of 1.3 to 1.8 went into faulting the pages in again, other each time.
"""

from __future__ import annotations

import ctypes
import sys

#: mallopt's names of glibc's malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let this process keep what it has freed for its next use; its peak does not grow. False where the C library has
    no such setting (musl, macOS), and nothing changes."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _NEVER))
