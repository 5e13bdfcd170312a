"""How fast, and how large, roles of the warmed process are. Run with `python -m tests.bench.roles`.

On loopback, without nodes: what is measured is the framework and the transport, not the links.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.core.enter import EnterToken
from emulator.training.context import Lost
from emulator.training.launch import run_roles
from emulator.training.message import Message
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.zygote import Zygote

if TYPE_CHECKING:
    from emulator.training.context import Context

ENTRIES = 421_642  # the paper's CNN: 1.7 MB
PULLS = 300
WORKERS = 10


async def gather(ctx: Context, spec: RoleSpec) -> None:
    """Wait for a word of each worker, then read the memory of all processes here, then end."""
    for _ in spec.workers:
        await ctx.receive()
    ctx.record("all", t_ready=ctx.now())
    siblings = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split()
    for pid in siblings:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
        size = {name: int(fields[name].split()[0]) for name in ("Rss", "Pss", "Private_Clean", "Private_Dirty")}
        ctx.record("memory", pss=size["Pss"], uss=size["Private_Clean"] + size["Private_Dirty"])


async def step_once(ctx: Context, spec: RoleSpec) -> None:
    """Say a word as soon as possible, after one training step of the paper's CNN if the spec has a budget."""
    if spec.budget:
        await ctx.compute(_step)
    await ctx.send(spec.server, Message("ready"))
    while not isinstance(await ctx.receive(), Lost):
        pass


def _step() -> None:
    from emulator.training import models

    model = models.build(Workload())
    images = np.zeros((10, 28, 28), np.float32)
    model.gradients(model.initial(0), images, np.zeros(10, np.int64))


async def models_out(ctx: Context, spec: RoleSpec) -> None:
    """Answer each pull with a model."""
    model = np.zeros(ENTRIES, np.float32)
    for _ in range(PULLS):
        pull = await ctx.receive()
        assert isinstance(pull, Message)
        await ctx.send(pull.sender, Message("model", {}, (model,)))
    ctx.record("cpu", seconds=sum(os.times()[:2]))


async def models_in(ctx: Context, spec: RoleSpec) -> None:
    """Pull models one after another."""
    begun = time.monotonic()
    for _ in range(PULLS):
        await ctx.send(spec.server, Message("pull"))
        await ctx.receive()
    ctx.record("cpu", seconds=sum(os.times()[:2]), elapsed=time.monotonic() - begun)


def _run(zygote: Zygote, server: str, worker: str, workers: int, budget: float = 0.0) -> list[dict[str, Any]]:
    names = ["server", *(f"worker-{number}" for number in range(1, workers + 1))]
    addresses = tuple((name, f"127.79.0.{number}") for number, name in enumerate(names, 2))
    specs = [
        RoleSpec(
            node=name,
            role=f"{__file__}:{server if name == 'server' else worker}",
            workload=Workload(),
            variant=Variant("bench"),
            server="server",
            workers=tuple(names[1:]),
            budget=budget,
            addresses=addresses,
            port=5606,
        )
        for name in names
    ]
    seen: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as out:
        run_roles(zygote, {name: EnterToken(name) for name in names}, specs, Path(out) / "run", seen.append)
    return seen


def main() -> None:
    """Print the table."""
    begun = time.monotonic()
    with Zygote() as zygote:
        zygote.wait_ready()
        print(f"warmed process: ready after {time.monotonic() - begun:.2f} s, {zygote.shared_size()} to share")
        for what, budget in (("ready to talk", 0.0), ("after a first step of the CNN", 1.0)):
            runs = [_run(zygote, "gather", "step_once", WORKERS, budget) for _ in range(5)]
            ready = statistics.median(item["t_ready"] for run in runs for item in run if item["kind"] == "all")
            memory = [item for item in runs[-1] if item["kind"] == "memory"]
            pss, uss = (statistics.median(item[kind] for item in memory) / 1024 for kind in ("pss", "uss"))
            print(f"{WORKERS} roles, {what}: {ready:.2f} s (median of 5); each {pss:.0f} MiB PSS, {uss:.0f} MiB USS")
        pulls = [_run(zygote, "models_out", "models_in", 1) for _ in range(5)]
        cpu = {
            side: statistics.median(
                item["seconds"] / PULLS * 1e3
                for run in pulls
                for item in run
                if item["kind"] == "cpu" and item["node"] == side
            )
            for side in ("server", "worker-1")
        }
        rate = statistics.median(PULLS / item["elapsed"] for run in pulls for item in run if "elapsed" in item)
        print(f"pulls of 1.7 MB: {rate:.0f}/s; CPU a pull: server {cpu['server']:.2f}, worker {cpu['worker-1']:.2f} ms")


if __name__ == "__main__":
    main()
