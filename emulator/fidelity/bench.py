"""What nodes of a device are measured by: each a lab of its own, made for the measurement and removed after it.

All rates are of emulated time. What cannot be measured here raises `NotMeasured`, with why.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.core.cache import user_cache
from emulator.core.errors import HostError, LabError
from emulator.devices import calibration
from emulator.devices.kernels import sevenzip
from emulator.devices.kernels.reading import Reading
from emulator.devices.kernels.register import STEP
from emulator.runtimes.base import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.lab import Lab

#: real seconds for one program in a node
LIMIT = 300.0
#: its nodes see the host's files, and so this Python; a container's image has neither the kernels nor torch
RUNTIME = "embedded"
#: real seconds of a kernel, of an emulated second's worth of TCP, and of random access to a card
SECONDS, TCP_SECONDS, CARD_SECONDS = 2.0, 5.0, 2.0
#: nodes that a training step is measured in
STEPS = 5
#: HPL's order: the larger, the nearer to the figure of a full memory and the longer
HPL_N, HPL_RUNS = 8000, 3
#: the network's time scale: a gigabit is 100 Mbit/s then, which every link driver carries
TCP_SCALE = 10.0
#: 7-Zip's: a core of a board is worth half a host core by it, and four are to fit on two
SEVENZIP_SCALE = 2.0
#: the card's: a disk of the host is to be slowed down, not to outrun itself
CARD_SCALE = 1.0
PORT = 5201


class NotMeasured(Exception):
    """Why a figure cannot be measured here."""


class Bench:
    """Measures nodes at a time scale."""

    def __init__(self, time_scale: float) -> None:
        self.time_scale = time_scale
        #: who used the host before a measurement began, as often as it was so
        self.busy: list[str] = []

    def kernel(self, device: str, basis: str, kernel: str) -> float:
        """What a kernel of `emulator.devices.kernels` does in a node calibrated by `basis`, per emulated second."""
        self._begin()
        return in_node(device, basis, kernel, self.time_scale).mean * self.time_scale

    def step(self, device: str, model: str) -> tuple[float, float]:
        """Emulated seconds of a training step in a node calibrated by that very step: the median of `STEPS` nodes, and
        what the slowest and the quickest differ by, over the median."""
        self._begin()
        found = sorted(steps(device, model, self.time_scale, STEPS))
        middle = statistics.median(found)
        return middle, (found[-1] - found[0]) / middle

    def hpl(self, device: str) -> tuple[float, str]:
        """HPL's FLOP/s on one node, and how it was run; where it cannot be had, DGEMM's."""
        self._begin()
        try:
            return _hpl(device)
        except HostError as error:
            flops = self.kernel(device, "linpack", "dgemm")
            return flops, f"DGEMM, which linpack compares by: HPL itself does not run here ({error.what})"

    def sevenzip(self, device: str, threads: int) -> float:
        """7-Zip's rating in a node with as many cores as threads."""
        command = sevenzip.command(threads)
        if command is None:
            raise NotMeasured(sevenzip.INSTALL)
        self._begin()
        with board(device, SEVENZIP_SCALE, basis="sevenzip", cpus=threads) as lab:
            said = lab.node("board").run(command, timeout=LIMIT).check().stdout
        try:
            return sevenzip.rating(said) * SEVENZIP_SCALE
        except ValueError as error:
            raise NotMeasured(str(error)) from None

    def tcp(self, device: str) -> float:
        """Bits a second of one TCP connection between two boards on a switch."""
        self._begin()
        program = [sys.executable, "-m", "emulator.fidelity.tcp"]
        with board(device, TCP_SCALE, basis="linpack", boards=2) as lab:
            receiver, sender = lab.node("board-1"), lab.node("board-2")
            sending = sender.start(Command((*program, "send", receiver.address, str(PORT))))
            done = receiver.run([*program, "serve", str(PORT), str(TCP_SECONDS)], timeout=LIMIT).check()
            sending.send_signal(signal.SIGKILL)
            sending.wait()
        return float(done.stdout) * 8 * TCP_SCALE

    def card(self, device: str) -> dict[str, float]:
        """Bytes a second of the card, past the page cache, by the names of a profile's figures."""
        self._begin()
        code = (
            "import json; from pathlib import Path; from emulator.devices import storage\n"
            f"print(json.dumps(storage.measure(Path('/var/tmp'), {CARD_SECONDS})))"
        )
        with _on_disk(), board(device, CARD_SCALE, basis="linpack") as lab:
            why = _uncapped(lab)
            if why:
                raise NotMeasured(why)
            done = lab.node("board").run([sys.executable, "-c", code], timeout=LIMIT)
        if done.returncode:
            raise NotMeasured((done.stderr.strip() or "the program failed").splitlines()[-1])
        return {name: value * CARD_SCALE for name, value in json.loads(done.stdout).items()}

    def _begin(self) -> None:
        by = calibration.busy_by()
        if by and by not in self.busy:
            self.busy.append(by)


def steps(device: str, model: str, time_scale: float, count: int) -> Iterator[float]:
    """Emulated seconds of a training step in so many nodes, one after the other.

    What a shared host does drifts by a tenth within minutes, so its own step is measured anew before every node's.
    """
    kernel = f"{STEP}{model}"
    for _ in range(count):
        calibration.one_core_anew(kernel)
        yield 1 / in_node(device, f"train:{model}", kernel, time_scale).mean / time_scale


def in_node(device: str, basis: str, kernel: str, time_scale: float) -> Reading:
    """Run the kernel in a node made for it, in real time. Raises TopologyError, HostError, LabError, RuntimeFailure."""
    with board(device, time_scale, basis=basis) as lab:
        node = lab.node("board")
        command = [sys.executable, "-m", "emulator.devices.kernels", kernel, "--threads", str(node.plan.threads)]
        done = node.run([*command, "--seconds", str(SECONDS)], timeout=LIMIT).check()
    try:
        return Reading.from_json(json.loads(done.stdout)["kernels"][kernel])
    except (ValueError, LookupError, TypeError):
        raise LabError(
            f"the kernel {kernel} on {device} printed no figure", fix="see `python -m emulator.devices.kernels --help`"
        ) from None


@contextmanager
def board(device: str, time_scale: float, *, basis: str, cpus: int | None = None, boards: int = 1) -> Iterator[Lab]:
    """A lab of one node "board", or of several "board-1" ..., on a switch."""
    from emulator.lab import Lab
    from emulator.topology import load_plan

    with tempfile.TemporaryDirectory(prefix="emu-fidelity-") as folder:
        file = Path(folder, "board.yaml")
        file.write_text(_topology(device, basis, cpus, boards))
        plan = load_plan(file, time_scale=time_scale)
    with Lab.from_plan(plan, runtime=RUNTIME) as lab:
        yield lab


def _topology(device: str, basis: str, cpus: int | None = None, boards: int = 1) -> str:
    """The file of such a lab."""
    node = {"count": boards} if boards > 1 else {}
    return json.dumps(
        {
            "name": f"fidelity-{os.getpid()}",
            "defaults": {"device": device, "calibrate": basis, "uplink": "lan"},
            "nodes": {"switch": {"kind": "switch"}, "board": node | ({} if cpus is None else {"cpus": cpus})},
            "links": [{"from": "board" if boards == 1 else "board-*", "to": "switch"}],
        }
    )


def _hpl(device: str) -> tuple[float, str]:
    """By the experiment of that kind, whose caps go by HPL's own speed on a core of this host."""
    from emulator.experiment import run_experiment

    with tempfile.TemporaryDirectory(prefix="emu-fidelity-") as folder:
        Path(folder, "board.yaml").write_text(_topology(device, "linpack"))
        experiment = {"kind": "linpack", "topology": "board.yaml", "nodes": [1], "n": HPL_N, "time_scale": "auto"}
        Path(folder, "hpl.yaml").write_text(json.dumps(experiment))
        result = run_experiment(Path(folder, "hpl.yaml"), out=Path(folder, "runs"), repeats=HPL_RUNS, force=True)
        (case,) = result.summary["cases"]
        if case["flops"] is None or case["state"] != "ok":
            raise NotMeasured(f"HPL ended as {case['state']}")
        scale = result.summary["time_scale"]
        return float(case["flops"]), f"HPL itself, n = {HPL_N}, time scale {scale:g}; the mean of {HPL_RUNS} runs"


@contextmanager
def _on_disk() -> Iterator[None]:
    """Let nodes made meanwhile have their files on a disk, where the user names no place for them."""
    variable = "EMU_NODE_DIR"
    if os.environ.get(variable):
        yield
        return
    place = user_cache()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nodes-", dir=place) as folder:
        os.environ[variable] = folder
        try:
            yield
        finally:
            del os.environ[variable]


def _uncapped(lab: Lab) -> str:
    """Why the card of the lab's nodes is not held to its speed; "" where it is."""
    from emulator.runtimes import cgroups, storage
    from emulator.runtimes.embedded import view

    return storage.note(lab.plan.machines[0], storage.disk(cgroups.detect(), view.disk_root()))
