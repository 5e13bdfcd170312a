"""Topologies from text, on a host whose worth is known."""

from __future__ import annotations

import textwrap
from typing import Any

from emulator.core.plan import Plan
from emulator.core.units import Size
from emulator.core.yaml_file import parse
from emulator.devices.host import HostSpeed
from emulator.topology import resolve
from emulator.topology.topology import check

#: a Pi 4 core (3.95 GFLOPS) is worth a tenth of one of its cores
HOST = HostSpeed(gflops=39.5, cores=4, memory=Size(16 * 2**30))


def plan_of(text: str, **arguments: Any) -> Plan:
    """The Plan of a topology written in a test, called file.yaml in its errors."""
    return resolve(check(parse(textwrap.dedent(text).lstrip("\n"), "file.yaml")), **{"host": HOST, **arguments})
