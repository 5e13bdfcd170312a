"""Files that come with emu beside its code: `images`, `topologies`, `experiments`."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str) -> Path:
    """The folder of that name: in a checkout beside the package, installed inside it (setup.py puts it there)."""
    beside = PACKAGE.parent
    return beside / name if (beside / "pyproject.toml").is_file() else PACKAGE / "shipped" / name
