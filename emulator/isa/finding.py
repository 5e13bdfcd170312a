"""What a check found about one package, library or program."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "dies", "late", "unknown"]


@dataclass(frozen=True)
class Finding:
    """`outcome` is "ok", "dies" (by `signal`, at `step`), "late" (no end in time) or "unknown" (`detail` says why).

    `did` is what was done without dying. `at` is the innermost line of Python, and `owner` the package that it belongs
    to, where one is known: what dies may be another package that this one imports. `given`: it was named itself, not
    found in an image.
    """

    subject: str
    name: str
    outcome: Outcome
    version: str = ""
    did: tuple[str, ...] = ()
    signal: str = ""
    step: str = ""
    at: str = ""
    owner: str = ""
    detail: str = ""
    seconds: float = 0.0
    given: bool = False

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".strip()

    @property
    def bad(self) -> bool:
        """Whether it died, or nothing was learnt of what was asked about."""
        return self.outcome in ("dies", "late") or (self.given and self.outcome == "unknown")

    @property
    def words(self) -> str:
        """The finding in words, without the name."""
        time = f" ({self.seconds:.1f} s)"
        if self.outcome == "dies":
            inside = f" in {self.owner}" if self.owner not in ("", self.name) else ""
            place = f" ({self.at})" if self.at else ""
            return f"dies with {self.signal}{inside} at: {self.step}{place}{time}"
        if self.outcome == "late":
            return f"no end in time at: {self.step}{time}"
        if self.outcome == "unknown":
            return f"not checked: {self.detail}"
        more = f"; {self.detail}" if self.detail else ""
        return f"{', '.join(self.did) or 'nothing to import'}{more}{time}"


def signal_name(number: int) -> str:
    """The name of a signal: SIGILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def verdict(findings: list[Finding], target: str, core: str) -> str:
    """One sentence over all findings, with the remedy where something dies."""
    bad = [finding for finding in findings if finding.outcome == "dies"]
    if bad:
        ends: dict[str, list[str]] = {}
        titles = {finding.name: finding.title for finding in findings}
        for finding in bad:
            whose = finding.owner or finding.name
            title = titles.get(whose, whose)
            if title not in ends.setdefault(finding.signal, []):
                ends[finding.signal].append(title)
        said = "; ".join(f"{', '.join(who)} {_dies(who)} with {name} on {target}" for name, who in ends.items())
        if "SIGILL" in ends:
            return f"{said}: take another version, or build for that core (-mcpu={core})"
        return f"{said}: that is no unknown instruction by itself; run it by hand to see why"
    late = [finding.title for finding in findings if finding.outcome == "late"]
    if late:
        return f"{', '.join(late)} did not end in time: give more of it (--timeout)"
    unknown = [finding.title for finding in findings if finding.outcome == "unknown"]
    checked = len(findings) - len(unknown)
    if not checked:
        return f"nothing could be checked: {', '.join(unknown)}"
    rest = f"; not checked: {', '.join(unknown)}" if unknown else ""
    return f"nothing dies on {target} of {checked} checked{rest}"


def _dies(who: list[str]) -> str:
    return "dies" if len(who) == 1 else "die"
