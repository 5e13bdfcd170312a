"""Which version of emu's own code runs in nodes, so that an image with another one is found before a run."""

from __future__ import annotations

import hashlib
from functools import cache

from emulator.core.shipped import PACKAGE

#: what an image bears that holds it
LABEL = "emu.code"
_PARTS = ("core", "training")


@cache
def digest() -> str:
    """Of the modules that a role is made of."""
    found = hashlib.sha256()
    for path in sorted(path for part in _PARTS for path in (PACKAGE / part).rglob("*.py")):
        found.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]
