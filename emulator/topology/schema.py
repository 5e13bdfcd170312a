"""The JSON schema of topology files, derived from the models, with the names of devices and presets filled in."""

from __future__ import annotations

from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """A JSON schema (draft 2020-12) that accepts what `emu validate` accepts, key by key."""
    from emulator.devices.profile import names
    from emulator.topology.model import TopologyFile
    from emulator.topology.presets import NAMES

    schema = TopologyFile.model_json_schema(by_alias=True)
    _name(schema, "device", names())
    _name(schema, "preset", list(NAMES))
    return {"$schema": DIALECT, "$id": "emu-topology", **schema, "title": "emu topology file"}


def _name(node: Any, key: str, choices: list[str]) -> None:
    """Fill in the choices of each property `key`, and of the preset names that `uplink` may hold."""
    if isinstance(node, list):
        for item in node:
            _name(item, key, choices)
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        if name == "properties":
            for wanted in (key, "uplink") if key == "preset" else (key,):
                _restrict(value.get(wanted), choices)
        _name(value, key, choices)


def _restrict(entry: Any, choices: list[str]) -> None:
    """Give the plain-text branch of a property an `enum`."""
    if not isinstance(entry, dict):
        return
    for branch in [entry, *entry.get("anyOf", ()), *entry.get("oneOf", ())]:
        if branch.get("type") == "string":
            branch["enum"] = choices
        elif branch is not entry and "oneOf" in branch:
            _restrict(branch, choices)
