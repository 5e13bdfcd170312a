"""Losses that come in bursts: the models that the kernel's netem has, with its parameters and its meaning.

Gilbert and Elliott: E. N. Gilbert, "Capacity of a burst-noise channel", Bell Syst. Tech. J. 39 (1960); E. O. Elliott,
"Estimates of error rates for codes on burst-noise channels", ibid. 42 (1963). The four-state model: S. Salsano,
F. Ludovici, A. Ordine, "Definition of a general and intuitive loss model for packet networks and its implementation
in the Netem module in the Linux kernel" (2009), with its state 1 = received in a gap, 2 = received in a burst,
3 = lost in a burst, 4 = a lone loss in a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gilbert-elliott", "4-state"]
#: what the parameters of each kind are called, in their order
PARAMETERS: dict[Kind, tuple[str, ...]] = {
    "gilbert-elliott": ("p", "r", "1-h", "1-k"),
    "4-state": ("p13", "p31", "p32", "p23", "p14"),
}


@dataclass(frozen=True)
class LossModel:
    """A Markov chain that takes one step for each packet; `parameters` are probabilities, named by `PARAMETERS`.

    Gilbert-Elliott: from good to bad with p, back with r; a packet that finds the chain bad is lost with 1-h, one that
    finds it good with 1-k.
    """

    kind: Kind
    parameters: tuple[float, ...]

    @property
    def share(self) -> float:
        """The share of packets lost in the long run."""
        if self.kind == "gilbert-elliott":
            p, r, in_bad, in_good = self.parameters
            bad = p / (p + r) if p else 0.0
            return bad * in_bad + (1 - bad) * in_good
        p13, p31, p32, p23, p14 = self.parameters
        # Balance of flows: what leaves 1 for 3 comes back, and so for 3 and 2; all of 4 returns to 1.
        lost = p13 / p31 if p13 else 0.0
        received = lost * p32 / p23 if lost * p32 else 0.0
        return (lost + p14) / (1 + lost + received + p14)

    @property
    def problem(self) -> str:
        """Why there can be no such chain; empty = there can."""
        names = PARAMETERS[self.kind]
        for name, value in zip(names, self.parameters, strict=True):
            if not 0 <= value <= 1:
                return f"{name} is {value * 100:g} %, and a probability is from 0 to 100 %"
        if self.kind == "gilbert-elliott":
            p, r, _, _ = self.parameters
            return "r is 0, so that once bad the line stays bad" if p and not r else ""
        p13, p31, p32, p23, p14 = self.parameters
        if p13 + p14 > 1:
            return f"p13 + p14 is {(p13 + p14) * 100:g} %, and both leave the same state"
        if p31 + p32 > 1:
            return f"p31 + p32 is {(p31 + p32) * 100:g} %, and both leave the same state"
        if p13 and not p31:
            return "p31 is 0, so that once in a burst the line stays in it"
        return "p23 is 0, so that once received in a burst nothing is lost again" if p32 and not p23 else ""


def gilbert(share: float, burst: float) -> LossModel:
    """Losses of that share in runs of that mean length (packets, at least 1 / (1 - share)).

    The two-state chain that loses all in its bad state. Independent losses have runs of 1 / (1 - share).
    """
    r = 1.0 / burst
    return LossModel("gilbert-elliott", (share * r / (1.0 - share), r, 1.0, 0.0))


def correlated(share: float, correlation: float) -> LossModel:
    """Losses of that share, of which each depends on the one before: what happened then has that correlation with it.

    The same two-state chain; its autocorrelation at a lag of n packets is `correlation` ** n. (netem's own correlation
    changes the share: at 1 % and 25 % it loses 0.02 %.)
    """
    return gilbert(share, 1.0 / ((1.0 - share) * (1.0 - correlation)))
