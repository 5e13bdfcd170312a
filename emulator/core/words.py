"""Words for a person."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 link, 2 links."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
