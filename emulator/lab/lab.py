"""`Lab`: up, down, exec. Joins a Plan, a runtime and a link driver, and keeps the journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.core.errors import LabError
from emulator.core.lab_id import LabId
from emulator.core.words import some
from emulator.lab import state as lab_state
from emulator.lab.node import LabNode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from emulator.core.clock import TimeScale
    from emulator.core.enter import EnterToken
    from emulator.core.plan import Plan
    from emulator.core.units import Size
    from emulator.lab.state import LabState
    from emulator.links.base import CableStatistics, DriverHealth, LinkDriver
    from emulator.runtimes.base import LabRuntime, Usage


@dataclass(frozen=True)
class LabStats:
    """One reading of everything a lab counts, in real (host) units."""

    usage: Mapping[str, Usage]
    cables: Mapping[str, CableStatistics]
    health: DriverHealth


class Lab:
    """A cluster that can be brought up, looked into and taken down.

    `with Lab.from_file("topologies/lan-4.yaml") as lab:` brings it up and takes it down; `Lab.attach("lan-4")`
    finds one that is up already, which a `with` would take down as well.
    """

    def __init__(self, plan: Plan, runtime: LabRuntime, links: LinkDriver) -> None:
        self.id = LabId.of(plan.name)
        self.plan = plan
        self.runtime = runtime
        self.links = links
        self._attached = False

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        name: str | None = None,
        time_scale: TimeScale | None = None,
        seed: int | None = None,
        arch: str | None = None,
        runtime: str | None = None,
        link_driver: str | None = None,
    ) -> Lab:
        """A lab of a topology file, not up yet. Raises TopologyError, HostError or UsageError."""
        from emulator.topology import load_plan

        plan = load_plan(path, name=name, time_scale=time_scale, seed=seed, arch=arch)
        return cls.from_plan(plan, runtime=runtime, link_driver=link_driver)

    @classmethod
    def from_plan(cls, plan: Plan, *, runtime: str | None = None, link_driver: str | None = None) -> Lab:
        """A lab of a Plan, not up yet."""
        from emulator import links, runtimes

        chosen = runtimes.choose(runtime, plan)
        said = [runtimes.passed_over(runtime, chosen.name, plan), _unmeasured(plan) if chosen.name != "fake" else ""]
        plan = replace(plan, notes=(*plan.notes, *filter(None, said)))
        if chosen.name == "fake" and link_driver is None:
            link_driver = "fake"
        return cls(plan, chosen, links.choose(link_driver))

    @classmethod
    def attach(cls, name: str) -> Lab:
        """A lab that is up. Raises LabError when there is none of that name."""
        from emulator import links, runtimes

        lab = LabId.of(name)
        state = lab_state.read(lab)
        if state is None:
            if lab.directory.is_dir():
                raise LabError(f"the state of lab {name!r} is damaged", fix=f"clean it with `emu down {name}`")
            running = [other for other in lab_state.names(lab.root) if lab_state.is_up(LabId(other, lab.root))]
            known = f"running: {', '.join(running)}" if running else "none is running"
            raise LabError(f"no lab named {name!r} is up", fix=f"start one with `emu up FILE` ({known})")
        if state.phase != lab_state.UP:
            raise LabError(
                f"lab {name!r} is half made or half removed (phase {state.phase})",
                fix=f"clean it with `emu down {name}`",
            )
        found = cls(lab_state.read_plan(lab), runtimes.of_lab(state.runtime), links.choose(state.link_driver))
        found._attached = True
        return found

    @property
    def name(self) -> str:
        """The lab's name, which is also its id."""
        return self.id.name

    @property
    def state(self) -> LabState | None:
        """What is on disk about this lab; None when it is not there."""
        return lab_state.read(self.id)

    def up(self, *, wait: bool = True) -> None:
        """Make all nodes and cables, start the nodes' commands, and (with `wait`) see each node answer a ping.

        All or nothing: whatever goes wrong, nothing of this lab is left. Raises LabError when the name is taken.
        """
        from emulator.lab.make import make

        make(self, wait=wait)

    def down(self) -> list[str]:
        """Remove everything of this lab; returns what was removed. Idempotent."""
        from emulator.lab.remove import remove

        return remove(self.id, parts=(self.runtime, self.links))

    def node(self, name: str) -> LabNode:
        """A node that runs programs. Raises LabError for any other name."""
        machines = {node.name: node for node in self.plan.machines}
        if name not in machines:
            import difflib

            near = difflib.get_close_matches(name, machines, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(list(machines)[:12])}"
            raise LabError(f"lab {self.name!r} has no node {name!r} that runs programs", fix=hint)
        return LabNode(self.id, machines[name], self.runtime)

    def enter(self, node: str) -> EnterToken:
        """The token by which a process of ours enters this node."""
        return self.runtime.enter(self.id, self.node(node).name)

    def stats(self) -> LabStats:
        """Read all counters once."""
        return LabStats(
            self.runtime.usage(self.id, [node.name for node in self.plan.machines]),
            self.links.statistics(self.id),
            self.links.health(self.id),
        )

    def charge_shared(self, node: str, size: Size) -> None:
        """Count `size` bytes of a warmed process's shared pages against the node's memory cap."""
        self.runtime.charge_shared(self.id, node, size)

    def __enter__(self) -> Lab:
        if not self._attached:
            self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


def _unmeasured(plan: Plan) -> str:
    """What to say where nodes have small shares of a processor, and what those are worth is not known."""
    from emulator.devices import delivery

    small = [one for one in plan.machines if not one.foreign and float(one.host_cpus) / one.threads < delivery.SMALL]
    if not small or delivery.known().points:
        return ""
    return (
        f"{some([one.name for one in small])}: so small a share of a processor does up to a quarter less than its time "
        "promises, and how much is not known yet; `emu calibrate` measures it, once"
    )
