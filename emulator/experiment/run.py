"""`run_experiment`: read, check, choose an engine, run every variant as often as asked, and report."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.core import clock
from emulator.core.errors import DegradedError, EmuError, ResultError, UsageError
from emulator.experiment.probe import own_step
from emulator.experiment.progress import Silent
from emulator.experiment.read import LINPACK, document_of, kind_of, read
from emulator.experiment.result import ExperimentResult
from emulator.experiment.signals import orderly, outcome
from emulator.experiment.specs import base_specs, check_roles, specs_for
from emulator.results import store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from emulator.core.clock import TimeScale
    from emulator.core.plan import Plan
    from emulator.devices.workload import Own
    from emulator.experiment.engines import Engine
    from emulator.experiment.pace import Pacing
    from emulator.experiment.progress import Watcher
    from emulator.experiment.read import Experiment
    from emulator.results.store import Run


@dataclass(frozen=True)
class Options:
    """What a caller may ask for besides the experiment itself; None = as the file says, or as this host can."""

    overrides: Mapping[str, object] = field(default_factory=dict)
    repeats: int | None = None
    seed: int | None = None
    time_scale: TimeScale | None = None
    runtime: str | None = None
    link_driver: str | None = None
    out: Path = store.ROOT
    force: bool = False
    arch: str | None = None
    strict: bool = False

    def all_overrides(self) -> dict[str, object]:
        named = {"repeats": self.repeats, "seed": self.seed, "time_scale": self.time_scale}
        return dict(self.overrides) | {key: value for key, value in named.items() if value is not None}


def run_experiment(
    experiment: str | Path, options: Options | None = None, watcher: Watcher | None = None, **changes: Any
) -> ExperimentResult:
    """Run an experiment by name or file and return its figures; `changes` are fields of `Options`.

    `run_experiment("quick", runtime="fake", overrides={"budget": "20 s"})`. On a host where nodes cannot be made it
    runs on the virtual clock and says so. Raises an EmuError of the class at fault; a KeyboardInterrupt leaves a
    run marked "interrupted" with all that was recorded, and no lab of its own.
    """
    from dataclasses import replace

    wanted = replace(options or Options(), **changes)
    _check(wanted)
    watch = watcher or Silent()
    if kind_of(document_of(experiment)[1]) == LINPACK:
        from emulator.experiment.linpack.run import run as run_linpack

        return run_linpack(experiment, wanted, watch)
    found = read(experiment, wanted.all_overrides())
    at = _planner(found, wanted.arch)
    auto = found.model.time_scale == clock.AUTO
    scale = 1.0 if auto else float(found.model.time_scale)
    plan = at(scale, None)
    check_roles(plan, str(found.topology))
    runtime = _runtime(wanted, plan, watch)
    if runtime != "fake":
        from emulator.runtimes import delivery

        if delivery.ensure(watch.note):
            plan = at(scale, None)
    data_directory = str(_fetch(found, watch))
    expected: dict[str, Any] = {}
    pacing = None
    if runtime != "fake":
        plan, expected, pacing = _admit(plan, at, found, data_directory, runtime, wanted, watch)
    else:
        if auto:
            watch.note("time scale 1: on the virtual clock no time scale is faster or slower than another")
        if found.model.calibrate == clock.AUTO:
            plan = at(scale, own_step(found.workload, data_directory))
    run = store.create(wanted.out, found.name, found.model.seed)
    with orderly(outcome(run.directory)), recorded(run):
        run.write("experiment.json", found.resolved())
        run.write_text("plan.json", plan.to_json() + "\n")
        with _engine(plan, runtime, wanted, found, watch) as engine:
            note_facts(run, engine.plan, engine.kind, engine.runtime, engine.link_driver, engine.notes, **expected)
            _run_all(run, engine, found, data_directory, pacing, watch)
    return ExperimentResult.of(run.directory, run.read("summary.json"))


def _planner(found: Experiment, arch: str | None) -> Callable[[float, Own | None], Plan]:
    """The experiment's Plan by time scale and by its own step, if nodes are to be worth what that says; the topology is
    read and the host calibrated once."""
    from dataclasses import replace

    from emulator.devices.host import calibration
    from emulator.topology import load, resolve

    topology, here = load(found.topology), calibration()

    def at(scale: float, own: Own | None) -> Plan:
        return resolve(topology, time_scale=scale, seed=found.model.seed, arch=arch, host=replace(here, auto=own))

    return at


def _check(wanted: Options) -> None:
    """Refuse what can be seen to be wrong before anything is fetched or measured: an unknown name, a bad --out."""
    from emulator import links, runtimes

    if wanted.link_driver is not None:
        links.driver(wanted.link_driver)
    if wanted.runtime is not None:
        runtimes.known(wanted.runtime)
    with store.writing(wanted.out):
        _check_out(wanted.out.absolute())


def _check_out(out: Path) -> None:
    """Raises the OSError that making a directory in `out` would, as far as it can be told without making one."""
    nearest = next(place for place in (out, *out.parents) if os.path.lexists(place))
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _runtime(wanted: Options, plan: Plan, watch: Watcher) -> str | None:
    """The runtime to use: "fake" where it was asked for, or where nodes cannot be made (and then it says so)."""
    from emulator import runtimes

    if wanted.runtime == "fake":
        if wanted.link_driver not in (None, "fake"):
            raise UsageError(
                f"link driver {wanted.link_driver!r} needs a lab", where="--link-driver", fix="leave out --runtime fake"
            )
        watch.note("running on the virtual clock (runtime fake): times are modelled, gradients are real")
        return "fake"
    if wanted.runtime is None and os.geteuid() != 0:
        watch.note("not root: running on the virtual clock (runtime fake) instead of in a lab; `sudo emu` makes nodes")
        return "fake"
    name = runtimes.choose(wanted.runtime, plan).name
    if name == "docker":
        from emulator.runtimes.docker import image

        image.require_current(plan)
    why = runtimes.passed_over(wanted.runtime, name, plan)
    if why:
        watch.note(why)
    return name


def _fetch(found: Experiment, watch: Watcher) -> Path:
    from emulator.training import data

    return data.fetch(found.workload.dataset, say=watch.note)


def _admit(
    plan: Plan,
    at: Callable[[float, Own | None], Plan],
    found: Experiment,
    data_directory: str,
    runtime: str | None,
    wanted: Options,
    watch: Watcher,
) -> tuple[Plan, dict[str, Any], Pacing]:
    """Measure a step, resolve the Plan by it and choose the time scale where that is left to us, estimate the use, and
    refuse or warn; returns the Plan, what of it belongs into run.json, and the paces."""
    from emulator.experiment import pace, scale
    from emulator.experiment.admission import admit, cycles, estimate
    from emulator.experiment.probe import measure

    emulated = {}
    foreign = pace.foreign_roles(plan)
    counted = found.model.calibrate == clock.AUTO
    cost = measure(found.workload, data_directory, found.variants if foreign else (), counted)
    if foreign:
        watch.note(f"measuring a step of {foreign[-1].name} under QEMU ({foreign[-1].cpu_model or 'any core'})")
        emulated = pace.emulated_costs(plan, runtime, found.workload, data_directory, found.variants)
    if found.model.time_scale == clock.AUTO:
        plan = scale.choose(lambda factor: at(factor, cost.own), found.variants, cost, emulated)
        watch.note(plan.notes[0])
    elif cost.own is not None:
        plan = at(plan.time_scale, cost.own)
    pacing = pace.Pacing(plan, cost, emulated)
    said = pacing.check(wanted.force)
    if said:
        watch.note(said)
    admission = estimate(plan, found.variants, cost, pacing=pacing)
    warning = admit(admission, plan, wanted.force)
    watch.note(warning or f"expected use: {admission}")
    measured = {"step_seconds": cost.step_seconds, "cycle_seconds": cycles(found.variants, cost)}
    return plan, {"admission": str(admission), "pacing": said} | measured, pacing


def _engine(
    plan: Plan, runtime: str | None, wanted: Options, found: Experiment, watch: Watcher
) -> AbstractContextManager[Engine]:
    from emulator.experiment.engines import FakeEngine, lab_engine

    if runtime == "fake":
        return nullcontext(FakeEngine(plan))
    return lab_engine(plan, runtime, wanted.link_driver, found.workload, found.name, watch, wanted.strict)


def note_facts(
    run: Run, plan: Plan, kind: str, runtime: str, link_driver: str, notes: list[str], **expected: Any
) -> None:
    """Write into the run what it is made on: the Plan, the engine's `kind`, the host."""
    from emulator.devices.calibration import doubts
    from emulator.experiment.host import describe

    run.write_text("plan.json", plan.to_json() + "\n")
    run.update(
        engine=kind,
        runtime=runtime,
        link_driver=link_driver,
        notes=notes,
        marks=[] if runtime == "fake" else doubts(of_used=True),  # the virtual clock goes by the device alone
        host=describe(),
        **expected,
    )


def _run_all(
    run: Run, engine: Engine, found: Experiment, data_directory: str, pacing: Pacing | None, watch: Watcher
) -> None:
    """Every repeat of every variant in turn; a repeat is done for all variants before the next one begins."""
    specs, real = base_specs(engine.plan, found, data_directory), clock.RealClock()
    took: dict[str, float] = {}
    for repeat in range(found.model.repeats):
        for variant in found.variants:
            out = run.directory / variant.name / str(repeat)
            with store.writing(out):
                out.mkdir(parents=True)
            start = real.now()
            watch.begin(variant.name, repeat, float(found.model.budget))
            paces = pacing.of(variant.name) if pacing else {}
            engine.run(specs_for(specs, variant, repeat, run.id, paces), out, watch)
            watch.end()
            took[variant.name] = round(took.get(variant.name, 0.0) + real.now() - start, 3)
            run.update(real_seconds=took)


@contextmanager
def recorded(run: Run) -> Iterator[None]:
    """Give the run its end state and its report, whatever happens in between."""
    state = "failed"
    try:
        yield
        state = "finished"
    except (KeyboardInterrupt, DegradedError):
        state = "interrupted"
        raise
    except OSError as error:
        if error.errno not in store.FULL:
            raise
        with store.writing(run.directory):
            raise
    finally:
        _close(run, state)


def _close(run: Run, state: str) -> None:
    from emulator.results.report import rebuild

    try:
        run.update(state=state, ended=clock.epoch())
        rebuild(run)
    except EmuError as error:
        # A run that failed before its first record has nothing to report; a finished one must be able to.
        if state == "finished" or not isinstance(error, ResultError):
            raise
