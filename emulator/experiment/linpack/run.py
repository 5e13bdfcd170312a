"""Run an experiment of kind linpack: read, check, take the host's reference, run HPL on each count of nodes, report."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.core import clock, record
from emulator.core.errors import BenchmarkError, HostError, UsageError
from emulator.core.words import MORE_MEMORY, counted
from emulator.experiment.engines import experiment_lab
from emulator.experiment.linpack import build, host, mpi, output
from emulator.experiment.linpack.hpl_file import hpl_file
from emulator.experiment.linpack.read import Linpack, case_name, read
from emulator.experiment.result import ExperimentResult
from emulator.experiment.run import note_facts, recorded
from emulator.experiment.sampler import NODE, Sampler
from emulator.experiment.signals import orderly, outcome
from emulator.results import store
from emulator.runtimes import delivery

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.core.plan import NodePlan, Plan
    from emulator.devices.host import HostSpeed
    from emulator.devices.speed import Speed
    from emulator.experiment.progress import Watcher
    from emulator.experiment.run import Options
    from emulator.lab import Lab
    from emulator.results.store import Run

#: what nodes that compute are marked with in the Plan, so that their use is recorded
ROLE = "hpl"
#: the record of one result, and what mpirun and HPL printed
KIND, TEXT = "hpl", "hpl.txt"
#: a run may take so many times as long as its caps let expect, and so many real seconds more
PATIENCE, SLACK = 10.0, 120.0


def run(name: str | Path, wanted: Options, watch: Watcher) -> ExperimentResult:
    """Run it; raises an EmuError of the class at fault."""
    found = read(name, wanted.all_overrides())
    _check(wanted)
    plan = _plan(found, wanted, None)
    found.check(plan)
    program = build.program(watch.note)
    delivery.ensure(watch.note)
    plan, speed = _calibrated(found, wanted, program, watch)
    device = plan.machines[0].device
    told = {"flops": speed.one, "busy": speed.busy, "program": program.name}
    experiment = store.create(wanted.out, found.name, found.model.seed)
    with orderly(outcome(experiment.directory)), recorded(experiment):
        experiment.write("experiment.json", found.resolved(device, told))
        experiment.write_text("plan.json", plan.to_json() + "\n")
        with experiment_lab(plan, "embedded", wanted.link_driver, found.name, watch) as lab:
            note_facts(experiment, lab.plan, "emulation", lab.runtime.name, lab.links.name, [])
            _run_all(experiment, lab, found, program, wanted.strict, watch)
    return ExperimentResult.of(experiment.directory, experiment.read("summary.json"))


def _check(wanted: Options) -> None:
    if wanted.runtime not in (None, "embedded"):
        raise UsageError(
            f"HPL runs in embedded nodes, not by {wanted.runtime}",
            where="--runtime",
            fix="leave it out: its program and Open MPI are this host's, which only those nodes have",
        )
    if os.geteuid() != 0:
        raise HostError("HPL needs nodes, and making them needs root", fix="run it with sudo")


def _plan(found: Linpack, wanted: Options, speed: HostSpeed | None) -> Plan:
    """The Plan, its computing nodes marked. Without a host's `speed`, one for checks only."""
    from emulator.devices.host import nominal
    from emulator.topology import resolve

    scale = 1.0 if speed is None else found.model.time_scale
    host_speed = speed or nominal()
    plan = resolve(found.topology(), time_scale=scale, seed=found.model.seed, arch=wanted.arch, host=host_speed)
    ranks = {node.name for node in found.ranks(plan, max(found.model.nodes))}
    nodes = tuple(replace(node, role=ROLE if node.name in ranks else "") for node in plan.nodes)
    return replace(plan, nodes=nodes)


def _calibrated(found: Linpack, wanted: Options, program: Path, watch: Watcher) -> tuple[Plan, Speed]:
    """The Plan by HPL's own speed on a core of this host, and that speed; refuses what the host cannot carry."""
    from emulator.devices.host import calibration

    model = found.model
    known, speed = host.host_speed(
        calibration(), program, model.n, model.block, force=wanted.force, say=watch.note
    )  # fmt: skip
    watch.note(f"HPL on one core of this host, n = {model.n}: {speed.one / 1e9:.1f} GFLOPS")
    plan = _plan(found, wanted, known)
    computing = [node for node in plan.machines if node.role or node.command]
    need = sum(node.quota for node in computing)
    if need > known.cores and not wanted.force:
        raise HostError(
            f"{counted(len(computing), 'node')} may use {need:.2f} cores of this host, and it has {known.cores}",
            fix="`--time-scale auto` slows it down enough; `--force` runs it all the same, marked",
        )
    note = (
        f"one core of this host does {speed.one / 1e9:.1f} GFLOPS of HPL at n = {model.n}, measured by the same "
        "program without a cap; the nodes' caps are set by that"
    )
    return replace(plan, notes=(*plan.notes, note)), speed


def _run_all(run: Run, lab: Lab, found: Linpack, program: Path, strict: bool, watch: Watcher) -> None:
    """Every repeat of every count of nodes in turn."""
    model, plan = found.model, lab.plan
    data = program.read_bytes()
    for node in found.ranks(plan, max(model.nodes)):
        mpi.place(lab, node.name, {"xhpl": data})
    took: dict[str, float] = {}
    for repeat in range(model.repeats):
        for count in model.nodes:
            out = run.directory / case_name(count) / str(repeat)
            with store.writing(out):
                out.mkdir(parents=True)
            ranks, start = found.ranks(plan, count), clock.RealClock().now()
            watch.note(
                f"{counted(count, 'node')}: HPL n = {model.n}, about {_expected(found, plan, ranks):.0f} real s or more"
            )
            result = _run_one(lab, found, ranks, out, strict)
            watch.note(f"{counted(count, 'node')}: {said(result, plan.time_scale)}")
            took[case_name(count)] = round(took.get(case_name(count), 0.0) + clock.RealClock().now() - start, 3)
            run.update(real_seconds=took)


def said(result: output.Result, time_scale: float) -> str:
    """A result for a person, in emulated units."""
    checked = "residual check passed" if result.passed else "RESIDUAL CHECK FAILED"
    return f"{result.flops * time_scale / 1e9:.2f} GFLOPS, {result.seconds / time_scale:.2f} s (emulated), {checked}"


def _expected(found: Linpack, plan: Plan, ranks: Sequence[NodePlan]) -> float:
    """Real seconds of the solution at the device's full speed on all nodes."""
    from emulator.devices import profile

    figure = profile(ranks[0].device).figure("hpl")
    flops = figure.value if figure else 1e9
    return output.operations(found.model.n) / (flops * len(ranks)) * plan.time_scale


def _run_one(lab: Lab, found: Linpack, ranks: Sequence[NodePlan], out: Path, strict: bool) -> output.Result:
    model, scale = found.model, lab.plan.time_scale
    names = [node.name for node in ranks]
    text = hpl_file(model.n, model.block, *model.grid(len(ranks))).encode()
    mpi.place(lab, names[0], {"HPL.dat": text, "hpccinf.txt": text})
    job, real = mpi.Job(lab, names), clock.RealClock()
    sampler, start = Sampler(lab, out, strict), real.now()
    sampler.begin()

    def now() -> float:
        return (real.now() - start) / scale

    limit = PATIENCE * _expected(found, lab.plan, ranks) + SLACK * max(1.0, scale)
    try:
        status = job.run("xhpl", limit, lambda: sampler.tick(now()))
        sampler.finish(now())
        out_of_memory = sampler.out_of_memory()
    finally:
        sampler.close()
        printed = "\n".join(job.output) + "\n"
        with store.writing(out):
            (out / TEXT).write_text(printed, encoding="utf-8")
    if out_of_memory:
        raise BenchmarkError(out_of_memory, where="HPL", fix=f"make `n` smaller, or {MORE_MEMORY}")
    if status:
        raise output.why_failed(printed, status)
    result = output.parse(printed)
    _write(out, now(), result, scale)
    return result


def _write(out: Path, t: float, result: output.Result, scale: float) -> None:
    """The record of a result: emulated `seconds` and `flops`, HPL's scaled residual and whether it passed."""
    values = {
        "n": result.n,
        "block": result.block,
        "grid": [result.rows, result.columns],
        "seconds": result.seconds / scale,
        "flops": result.flops * scale,
        "residual": min(result.residual, 1e300),
        "passed": result.passed,
    }
    with store.writing(out):
        (out / "hpl.jsonl").write_text(record.encode(t, NODE, KIND, values) + "\n", encoding="utf-8")
