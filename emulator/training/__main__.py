"""`python -m emulator.training FD`: run one role in this process, without a warmed one (and Docker's way).

FD is an inherited descriptor from which a JSON object is read to its end: `spec` (a RoleSpec), `origin` (the run's
start on the host's monotonic clock), `records` (a descriptor open for appending) and, if it takes snapshots,
`snapshots` (a descriptor of a directory); with `held` it waits once it has imported all. The exit code is the role's.
"""

from __future__ import annotations

import json
import os
import sys

from emulator.core.errors import UsageError
from emulator.training.role_process import RoleRequest, guarded, run_role
from emulator.training.spec import RoleSpec


def request_from(descriptor: int) -> RoleRequest:
    """Read a request; raises UsageError if there is none."""
    try:
        with os.fdopen(descriptor, encoding="utf-8") as file:
            raw = json.load(file)
        spec = RoleSpec.from_json(json.dumps(raw["spec"]))
        return RoleRequest(spec, raw["origin"], raw["records"], raw.get("snapshots", -1), raw.get("held", False))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"descriptor {descriptor} holds no role request ({error})",
            where="python -m emulator.training",
            fix="write a JSON object with spec, origin and records to it",
        ) from None


def main(arguments: list[str]) -> int:
    """The exit code of the role asked for."""
    if len(arguments) != 1 or not arguments[0].isdecimal():
        return guarded(_usage)
    found: list[RoleRequest] = []
    return guarded(lambda: found.append(request_from(int(arguments[0])))) or run_role(found[0])


def _usage() -> None:
    raise UsageError(
        "one argument is needed: the descriptor of the role request",
        where="python -m emulator.training",
        fix="see `python -m pydoc emulator.training.__main__`",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
