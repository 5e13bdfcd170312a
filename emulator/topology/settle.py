"""What a host finally says: defaults, then its groups from the oldest, then its own keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.core.errors import TopologyError
from emulator.topology.explain import nearest
from emulator.topology.model import HostFields

if TYPE_CHECKING:
    from emulator.core.yaml_file import Step
    from emulator.topology.expand import OneNode
    from emulator.topology.topology import Topology

FIELDS = tuple(HostFields.model_fields)
#: what only a host can have
HOST_ONLY = tuple(name for name in FIELDS if name != "uplink")


@dataclass(frozen=True)
class Settled:
    """The merged fields of a node (those left out are absent), and where in the file each was said."""

    values: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def over(self, spec: HostFields | None, at: tuple[Step, ...]) -> Settled:
        """These fields with those of `spec` laid over them; `env` is merged, all else is replaced."""
        own = {} if spec is None else {name: getattr(spec, name) for name in FIELDS}
        own = {name: value for name, value in own.items() if value is not None}
        if "env" in own:
            own["env"] = {**self.values.get("env", {}), **own["env"]}
        return Settled(self.values | own, self.steps | {name: (*at, name) for name in own})


class Settler:
    """Settles the nodes of a topology; groups are followed once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._groups = topology.spec.groups or {}
        self._done: dict[str, Settled] = {"": Settled()}
        for name in self._groups:
            self._group(name, ())
        defaults = topology.spec.defaults
        if defaults and defaults.group:
            self._known(defaults.group, ("defaults", "group"))

    def settle(self, node: OneNode) -> Settled:
        """The node's merged fields; raises TopologyError for an unknown group or a key that its kind cannot have."""
        if node.group:
            self._known(node.group, (*node.steps, "group"))
        group = self._done[node.group]
        if node.spec.kind != "host":
            self._check_network_node(node)
            uplink = {name: group.values[name] for name in ("uplink",) if name in group.values}
            return Settled(uplink, group.steps).over(node.spec, node.steps)
        base = Settled().over(self._topology.spec.defaults, ("defaults",))
        values = base.values | group.values
        if "env" in base.values or "env" in group.values:
            values["env"] = {**base.values.get("env", {}), **group.values.get("env", {})}
        return Settled(values, base.steps | group.steps).over(node.spec, node.steps)

    def _group(self, name: str, trail: tuple[str, ...]) -> Settled:
        if name in trail:
            cycle = " -> ".join([*trail[trail.index(name) :], name])
            raise TopologyError(
                f"the groups extend each other in a loop: {cycle}",
                where=self._topology.document.where("groups", trail[-1], "extends"),
                fix="take one `extends` out",
            )
        if name not in self._done:
            spec = self._groups[name]
            parent = spec.extends if spec and spec.extends else ""
            if parent:
                self._known(parent, ("groups", name, "extends"))
            below = self._group(parent, (*trail, name)) if parent else Settled()
            self._done[name] = below.over(spec, ("groups", name))
        return self._done[name]

    def _known(self, group: str, steps: tuple[Step, ...]) -> None:
        if group not in self._groups:
            raise TopologyError(
                f"there is no group {group!r}",
                where=self._topology.document.where(*steps),
                fix=nearest(group, self._groups),
            )

    def _check_network_node(self, node: OneNode) -> None:
        for key in HOST_ONLY:
            if getattr(node.spec, key) is not None:
                raise TopologyError(
                    f"a {node.spec.kind} has no `{key}`",
                    where=self._topology.document.where(*node.steps, key),
                    fix="remove it, or make the node a host",
                )
