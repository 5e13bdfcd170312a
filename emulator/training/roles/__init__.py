"""Roles: what a node does in a training run. Each is `async def role(ctx, spec)` and awaits only its Context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from emulator.training import plugins

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from emulator.training.context import Context
    from emulator.training.spec import RoleSpec

NAMES = {
    "parameter_server": "emulator.training.roles.parameter_server:parameter_server",
    "worker": "emulator.training.roles.worker:worker",
}


class Role(Protocol):
    """A role's function."""

    def __call__(self, ctx: Context, spec: RoleSpec) -> Coroutine[Any, Any, None]: ...


def find(name: str) -> Role:
    """The role of that name, or of a file as `path.py:name`; raises ExperimentError if there is none."""
    return cast("Role", plugins.find("roles", name, NAMES))
