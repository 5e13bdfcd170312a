"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path


def expanded(text: str | Path) -> Path:
    """The path with `~` as a home directory; as it stands where there is no such user, so that opening it says so."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
