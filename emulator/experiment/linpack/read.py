"""An experiment file of kind linpack, with what the command line overrides -> a checked `Linpack`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from emulator.core.errors import ExperimentError, TopologyError
from emulator.core.paths import expanded
from emulator.core.units import Size
from emulator.core.words import counted
from emulator.experiment.read import LINPACK, document_of, model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.core.plan import NodePlan, Plan
    from emulator.experiment.linpack.model import LinpackModel, ReferenceModel
    from emulator.topology.topology import Topology

#: bytes of a process beside its part of the matrix: MPI, OpenBLAS's buffers, the program (50 MiB were seen)
BESIDE = 64 * 2**20
_DOUBLE = 8


@dataclass(frozen=True)
class Linpack:
    """A checked experiment: `name` is its file's, `model` what it says after overrides, `where` tells a key's line."""

    name: str
    path: Path
    model: LinpackModel
    where: Callable[..., str]

    def topology(self) -> Topology:
        """The topology file with the experiment's `device` in place of its default; raises TopologyError."""
        from emulator.topology import load
        from emulator.topology.model import Defaults

        found = load((self.path.parent / expanded(self.model.topology)).resolve())
        if self.model.device is None:
            return found
        defaults = (found.spec.defaults or Defaults()).model_copy(update={"device": self.model.device})
        return replace(found, spec=found.spec.model_copy(update={"defaults": defaults}))

    def ranks(self, plan: Plan, nodes: int) -> list[NodePlan]:
        """The nodes that a case of so many runs on: the first ones of the Plan."""
        return list(plan.machines[:nodes])

    def check(self, plan: Plan) -> None:
        """See that the nodes are there, alike, and large enough for the matrix; raises ExperimentError."""
        machines, most = plan.machines, max(self.model.nodes)
        if len(machines) < most:
            raise ExperimentError(
                f"the topology has {counted(len(machines), 'node')} that run programs, not {most}",
                where=self.where("nodes"),
                fix=f"ask for at most {len(machines)}, or take a larger topology",
            )
        if devices := {node.device for node in machines[:most]} - {machines[0].device}:
            raise ExperimentError(
                f"the nodes are of several devices ({machines[0].device}, {', '.join(sorted(devices))}), and HPL gives "
                "each the same part",
                where=self.where("topology"),
                fix="take nodes of one device",
            )
        for count in self.model.nodes:
            self._check_memory(self.ranks(plan, count))

    def _check_memory(self, ranks: list[NodePlan]) -> None:
        n, block, count = self.model.n, self.model.block, len(ranks)
        need = memory(n, block, count)
        least = min(ranks, key=lambda node: node.memory)
        if need > least.memory:
            room = int(max(0.0, (least.memory - BESIDE) * 0.97 * count / _DOUBLE) ** 0.5) // 100 * 100
            raise ExperimentError(
                f"n = {n} on {counted(count, 'node')} needs {Size(need) / 2**30:.3g} GiB of each, and {least.name} has "
                f"{least.memory / 2**30:.3g}",
                where=self.where("n"),
                fix=f"write n at most {room}",
            )

    def references(self, device: str) -> list[ReferenceModel]:
        """The file's figures of that device."""
        return [item for item in self.model.references if item.device == device]

    def resolved(self, device: str, host: Mapping[str, Any]) -> dict[str, Any]:
        """What experiment.json holds: everything that was decided, in base units. `host` tells of the reference."""
        from emulator.devices import profile

        model, figure = self.model, profile(device).figure("hpl")
        known = [
            {"nodes": item.nodes, "flops": float(item.hpl), "source": item.source, "calibrated": False}
            for item in self.references(device)
        ]
        if figure is not None:
            known.append({"nodes": 1, "flops": figure.value, "source": figure.source, "calibrated": True})
        return {
            "kind": LINPACK,
            "name": self.name,
            "description": model.description,
            "topology": model.topology,
            "device": device,
            "n": model.n,
            "block": model.block,
            "cases": [
                {"name": case_name(nodes), "nodes": nodes, "grid": list(model.grid(nodes))} for nodes in model.nodes
            ],
            "references": known,
            "host_core": dict(host),
            "time_scale": model.time_scale,
            "seed": model.seed,
            "repeats": model.repeats,
        }


def case_name(nodes: int) -> str:
    """A case's name, which is also its directory's."""
    return f"nodes-{nodes}"


def memory(n: int, block: int, nodes: int) -> float:
    """Bytes that one process needs: its columns of the matrix, two panels on the way, and what is beside."""
    return (n * (n / nodes + block) + 4 * n * block) * _DOUBLE + BESIDE


def read(text: str | Path, overrides: Mapping[str, object] | None = None) -> Linpack:
    """Read the experiment called `text` and apply `overrides` ({"n": 4000}).

    Raises ExperimentError with file, line and the nearest right key.
    """
    from emulator.devices import profile
    from emulator.experiment.linpack.model import LinpackModel

    path, document = document_of(text)
    model = model_of(document, LinpackModel, overrides or {})
    for where, device in [("device", model.device), *(("references", item.device) for item in model.references)]:
        try:
            profile(device) if device else None
        except TopologyError as error:
            raise ExperimentError(error.what, where=document.where(where), fix=error.fix) from None
    return Linpack(path.stem, path.resolve(), model, document.where)
