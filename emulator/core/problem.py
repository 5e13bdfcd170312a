"""What keeps a part of emu from working on this host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A fact about this host, and the one thing that mends it. Found by trying; whoever needs the part raises it."""

    fact: str
    fix: str

    def __str__(self) -> str:
        return f"{self.fact}; {self.fix}"
