"""The JSON schema of device profiles, for editors: keys and shapes; what contradicts what is told by `emu devices`."""

from __future__ import annotations

from typing import Any

from emulator.devices.figures import KINDS
from emulator.devices.profile_file import UNKNOWN

_TEXT = {"type": "string", "minLength": 1}
_VALUE = {"type": ["string", "number"]}
_CONDITIONS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_SOURCED = {"source": _TEXT | {"description": "where it was read or measured"}, "derived": _TEXT}


def json_schema() -> dict[str, Any]:
    """A JSON schema (draft 2020-12) of the keys that a profile may have."""
    figures = {
        key: _or_unknown(_object({"value": _VALUE, **_SOURCED, "conditions": _CONDITIONS}, "value", "source"))
        | {"description": f"{kind.meaning}, like {kind.quantity.example}"}
        for key, kind in KINDS.items()
    }
    times = {"type": "object", "additionalProperties": _TEXT, "minProperties": 1}
    count = {"type": "integer", "minimum": 1}
    training = _object(
        {"batch": count, "image": count, "batches": count, "seconds": times, **_SOURCED, "conditions": _CONDITIONS},
        "batch", "image", "seconds", "source",
    )  # fmt: skip
    thermal = _object({"above": _TEXT, "clock": _TEXT, **_SOURCED}, "source")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "emu-device",
        "title": "emu device profile",
        **_object(
            {
                "title": _TEXT,
                "extends": _TEXT | {"description": "the device that this is a variant of"},
                "cpu_model": _TEXT | {"description": "the core as QEMU names it"},
                **figures,
                "training": _or_unknown({"type": "array", "items": training}),
                "thermal": _or_unknown({"type": "array", "items": thermal}),
            },
            "title",
        ),
    }


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False
    }  # fmt: skip


def _or_unknown(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"const": UNKNOWN}]}
