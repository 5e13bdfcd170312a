"""Whether this kernel can carry netem's cables: tried in a namespace that goes at once."""

from __future__ import annotations

import os

from emulator.core import linux
from emulator.core.plan import Impairment
from emulator.core.problem import Problem
from emulator.core.units import Delay, Rate, Size
from emulator.links import netem_hub as hub_of
from emulator.links import netem_line
from emulator.links import netem_netlink as nl

#: what a refusal means, by what was tried
_MODULES = {
    "netem": "sch_netem",
    "tbf": "sch_tbf",
    "ingress": "sch_ingress (NET_SCH_INGRESS)",
    "redirection": "cls_matchall or act_mirred",
}


def probe() -> list[Problem]:
    """What keeps netem's cables from working here; empty = they work."""
    if os.geteuid() != 0:
        return [Problem("links need root (CAP_NET_ADMIN)", "run emu with sudo, or an experiment with --runtime fake")]
    try:
        return hub_of.in_thread(_try)
    except OSError as error:
        fact = f"no network namespace can be made ({error.strerror or error})"
        return [Problem(fact, "give this container CAP_SYS_ADMIN")]


def _try() -> list[Problem]:
    linux.unshare(linux.CLONE_NEWNET)
    line = netem_line.line_of(Impairment(Rate(1e9), Delay(0.001), queue=Size(1 << 20)), 1500, "probe")
    with nl.Netlink() as link:
        try:
            link.send([hub_of.qdisc(1, netem_line.gate(line), "netem")])
            link.send([hub_of.qdisc(1, netem_line.tbf(line), "tbf", hub_of.CHILD)])
            link.send([hub_of.ingress(1, "loopback")._replace(label="ingress")])
            link.send([hub_of.redirect(1, 1, 1, "loopback")._replace(label="redirection")])
        except nl.NetlinkError as error:
            module = _MODULES[error.label]
            fix = "load or install it (its package is often named linux-modules-extra), or use --link-driver relay"
            return [Problem(f"this kernel has no {module} ({error.strerror})", fix)]
    return []
