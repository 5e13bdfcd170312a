"""Where the roles of an experiment run: on the virtual clock, or in a lab. Both leave the same records."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from emulator.core.errors import LabError, TrainingError
from emulator.core.words import MORE_MEMORY
from emulator.experiment.signals import undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from emulator.core.plan import Plan
    from emulator.experiment.progress import Watcher
    from emulator.lab import Lab
    from emulator.training.spec import RoleSpec, Workload
    from emulator.training.zygote import Zygote


class Engine(Protocol):
    """Runs roles of one Plan, as often as asked. `kind`, `runtime` and `link_driver` go into the honesty block."""

    kind: str
    runtime: str
    link_driver: str
    plan: Plan
    notes: list[str]

    def run(self, specs: Sequence[RoleSpec], out: Path, watcher: Watcher) -> None:
        """Run one variant once; records go to `out`. Raises TrainingError."""
        ...


class FakeEngine:
    """Roles in this process on a virtual clock: no root, exact for a seed."""

    kind, runtime, link_driver = "virtual clock", "fake", "fake"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.notes = [
            "compute time is modelled from floating-point operations and message time from the Plan's links; "
            "gradients are real"
        ]

    def run(self, specs: Sequence[RoleSpec], out: Path, watcher: Watcher) -> None:
        from emulator.simulation.engine import run_roles

        run_roles(self.plan, specs, out, watcher.record)


class LabEngine:
    """Roles as processes in a lab's nodes, forked from one that has imported the framework already."""

    kind = "emulation"

    def __init__(self, lab: Lab, zygote: Zygote, strict: bool = False) -> None:
        self._strict = strict
        self.plan, self.runtime, self.link_driver = lab.plan, lab.runtime.name, lab.links.name
        self._lab, self._zygote = lab, zygote
        self.notes: list[str] = []

    def charge_shared(self) -> None:
        """Count the framework's pages, which all roles share, against each node's memory cap, and say so."""
        forked = [node.name for node in self.plan.machines if node.role and not self._lab.enter(node.name).interpreter]
        if not forked:
            return
        shared = self._zygote.shared_size()
        for name in forked:
            self._lab.charge_shared(name, shared)
        self.notes.append(
            f"{shared / 2**20:.0f} MiB of framework pages are shared by all roles of the host; each node's memory "
            "cap is lowered by them and its usage shown with them"
        )

    def run(self, specs: Sequence[RoleSpec], out: Path, watcher: Watcher) -> None:
        from emulator.experiment.sampler import Sampler
        from emulator.training.launch import run_roles

        tokens = {spec.node: self._lab.enter(spec.node) for spec in specs}
        sampler = Sampler(self._lab, out, self._strict)
        relay = self._lab.links.health(self._lab.id).pid

        def on_record(item: dict[str, Any]) -> None:
            watcher.record(item)
            if item["kind"] == "budget_started":
                sampler.begin()
            if item["kind"] == "stop" and "updates" in item:  # the server's: what follows is idle time
                sampler.finish(float(item["t"]))

        try:
            run_roles(
                self._zygote, tokens, specs, out, on_record,
                beside=relay, on_tick=sampler.tick, on_drain=watcher.evaluating,
            )  # fmt: skip
        except TrainingError as error:
            raise self._with_cause(error, sampler.out_of_memory()) from None
        finally:
            sampler.close()

    @staticmethod
    def _with_cause(error: TrainingError, out_of_memory: str) -> TrainingError:
        """The same error, with what the kernel did to a node, which the node itself cannot tell."""
        if not out_of_memory:
            return error
        return TrainingError(f"{error.what}; {out_of_memory}", where=error.where, fix=MORE_MEMORY)


@contextmanager
def lab_engine(
    plan: Plan,
    runtime: str | None,
    link_driver: str | None,
    workload: Workload,
    name: str,
    watcher: Watcher,
    strict: bool = False,
) -> Iterator[LabEngine]:
    """An engine on the running lab that fits, else on a lab of its own, which is removed at the end.

    A `strict` one ends a run with DegradedError as soon as the host does not keep up.
    """
    from emulator.training.zygote import Zygote

    with experiment_lab(plan, runtime, link_driver, name, watcher) as lab, Zygote(workload, lab.id) as zygote:
        engine = LabEngine(lab, zygote, strict)
        engine.charge_shared()
        yield engine


@contextmanager
def experiment_lab(
    plan: Plan, runtime: str | None, link_driver: str | None, name: str, watcher: Watcher
) -> Iterator[Lab]:
    """The running lab that fits the Plan, else one of the experiment's own, which is removed at the end."""
    lab, own = _lab(plan, runtime, link_driver, name, watcher)
    try:
        if own:
            lab.up()
            watcher.note(f"lab {lab.name}: {len(plan.machines)} nodes by {lab.runtime.name}, links by {lab.links.name}")
        yield lab
    finally:
        if own:
            with undisturbed():
                lab.down()


def _lab(plan: Plan, runtime: str | None, link_driver: str | None, name: str, watcher: Watcher) -> tuple[Lab, bool]:
    """The lab to use, and whether it is the experiment's own; that has a name of its own, so that a second
    experiment does not take it for the user's."""
    from emulator.lab import Lab

    own = f"{plan.name}-{name}"[:40].rstrip("-")
    try:
        lab = Lab.attach(plan.name)
    except LabError:
        return Lab.from_plan(replace(plan, name=own), runtime=runtime, link_driver=link_driver), True
    differs = _difference(lab, plan, runtime, link_driver)
    if not differs:
        watcher.note(f"using lab {lab.name}, which is up already")
        return lab, False
    watcher.note(f"lab {lab.name} is up with another {differs}; making lab {own} beside it, removed at the end")
    return Lab.from_plan(replace(plan, name=own), runtime=runtime, link_driver=link_driver), True


def _difference(lab: Lab, plan: Plan, runtime: str | None, link_driver: str | None) -> str | None:
    """In what a running lab is not what the experiment needs; None = it is."""
    if lab.plan.time_scale != plan.time_scale:
        return f"time scale ({lab.plan.time_scale:g}, not {plan.time_scale:g})"
    if (lab.plan.nodes, lab.plan.links) != (plan.nodes, plan.links):
        return "plan"
    if runtime not in (None, lab.runtime.name):
        return f"runtime ({lab.runtime.name})"
    if link_driver not in (None, lab.links.name):
        return f"link driver ({lab.links.name})"
    return None
