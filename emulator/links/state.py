"""What a driver must remember of its cables: one JSON line each in `<lab>/<driver>/cables.jsonl`, then changes.

A later line about a cable replaces the impairments of an earlier one, so a change is one short append.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from emulator.core.plan import Impairment, impairment_from
from emulator.core.state_file import replace_state
from emulator.links.base import Cable, CableEnd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.core.lab_id import LabId


def directory(lab: LabId, driver: str) -> Path:
    """Where a driver keeps its state of a lab."""
    return lab.directory / driver


def cables_file(lab: LabId, driver: str) -> Path:
    """The cables of a lab with their changes."""
    return directory(lab, driver) / "cables.jsonl"


def cable_from(raw: dict[str, Any]) -> Cable:
    """Read back what `asdict` made of a Cable."""
    return Cable(
        raw["name"],
        CableEnd(**raw["a"]),
        CableEnd(**raw["b"]),
        impairment_from(raw["a_to_b"]),
        impairment_from(raw["b_to_a"]),
        raw["mtu"],
        raw.get("seed", 0),
    )


def write_cables(lab: LabId, driver: str, cables: Sequence[Cable]) -> None:
    """Write all cables, replacing the file; raises HostError when it cannot be written."""
    text = "".join(json.dumps(asdict(cable)) + "\n" for cable in cables)
    replace_state(cables_file(lab, driver), text)


def write_change(lab: LabId, driver: str, cable: str, a_to_b: Impairment, b_to_a: Impairment) -> None:
    """Append a cable's new impairments, in one write."""
    line = json.dumps({"name": cable, "a_to_b": asdict(a_to_b), "b_to_a": asdict(b_to_a)}) + "\n"
    descriptor = os.open(cables_file(lab, driver), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_cables(lab: LabId, driver: str) -> list[Cable]:
    """All cables with their latest impairments, in plugging order; none where there is no state."""
    try:
        lines = cables_file(lab, driver).read_text().splitlines()
    except FileNotFoundError:
        return []
    cables: dict[str, Cable] = {}
    for line in lines:
        raw = json.loads(line)
        if raw["name"] in cables:
            a_to_b, b_to_a = impairment_from(raw["a_to_b"]), impairment_from(raw["b_to_a"])
            cables[raw["name"]] = replace(cables[raw["name"]], a_to_b=a_to_b, b_to_a=b_to_a)
        else:
            cables[raw["name"]] = cable_from(raw)
    return list(cables.values())


def remove_state(lab: LabId, driver: str) -> None:
    """Forget the cables (idempotent)."""
    shutil.rmtree(directory(lab, driver), ignore_errors=True)
