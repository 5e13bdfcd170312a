"""Where this user's cached files lie."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """emu's folder in the user's cache directory; a user without a home has one in TMPDIR. Not made by this call."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "emu"
    try:
        return Path.home() / ".cache" / "emu"
    except RuntimeError:  # no HOME and no entry in the password file
        return Path(os.environ.get("TMPDIR", "/tmp")) / f"emu-{os.geteuid()}"
