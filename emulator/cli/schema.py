"""`emu schema`: the JSON schemas of topology files and of device profiles, for editors."""

from __future__ import annotations

import typer


def schema(
    of: str = typer.Argument("topology", help="topology or device."),
) -> None:
    """Print the JSON schema of topology files, or of device profiles; editors use it to complete and check."""
    import json

    from emulator.core.errors import UsageError

    if of == "topology":
        from emulator.topology.schema import json_schema
    elif of == "device":
        from emulator.devices.schema import json_schema
    else:
        raise UsageError(f"there is no schema of {of!r}", where="emu schema", fix="use topology or device")
    print(json.dumps(json_schema(), indent=2))
