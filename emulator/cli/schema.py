"""`emu schema`: the JSON schema of topology files, for editors."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON schema of topology files; editors use it to complete and check while you type."""
    import json

    from emulator.topology.schema import json_schema

    print(json.dumps(json_schema(), indent=2))
