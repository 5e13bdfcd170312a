"""The rows of the report: every figure of a profile that says how fast the device is, and what its node gets."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from emulator.core.words import counted
from emulator.devices import roofline
from emulator.devices.figures import KINDS
from emulator.devices.host_step import PACKAGE
from emulator.devices.workload import reference, references
from emulator.fidelity.bench import CARD_SCALE, SEVENZIP_SCALE, STEPS, TCP_SCALE, NotMeasured
from emulator.fidelity.row import Row
from emulator.results.fidelity import CALIBRATED, LEFT_OUT, PREDICTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.devices.profile import DeviceProfile


class Measurer(Protocol):
    """What rows are measured by; rates are of emulated time. See `bench.Bench`. Raises NotMeasured."""

    def kernel(self, device: str, basis: str, kernel: str) -> float: ...

    def step(self, device: str, model: str) -> tuple[float, float]: ...

    def hpl(self, device: str) -> tuple[float, str]: ...

    def sevenzip(self, device: str, threads: int) -> float: ...

    def tcp(self, device: str) -> float: ...

    def card(self, device: str) -> dict[str, float]: ...


#: figures that a kernel measures in a node calibrated by `linpack`
KERNELS = {
    "stream_copy": "copy",
    "stream_scale": "scale",
    "stream_add": "add",
    "stream_triad": "triad",
    "memcpy": "memcpy",
}
MEMORY_NOTE = "nothing caps the memory's rate: it follows from the share of a core"
#: figures that the node is held to by a cap; the NIC's by its link
INPUTS = ("hpl", "sevenzip_all", "nic_tcp", "storage_read", "storage_write", "storage_read_4k", "storage_write_4k")
CARD = ("storage_read", "storage_write", "storage_read_4k", "storage_write_4k")
#: figures that describe the machine instead of saying how fast it is, and the watts, which are modelled from them
NO_SPEED = ("cores", "clock", "memory", "l1d", "l1i", "l2", "l3", "idle", "loaded", "hpl_power")
#: derived from the training figures, or what a link is set to, so no figures of their own
DERIVED = ("sgemm", "nic")
#: what a quick report measures
QUICK = ("hpl", "stream_triad", "train_mnasnet")


def rows(device: DeviceProfile, quick: bool, bench: Measurer, say: Callable[[str], None]) -> Iterator[Row]:
    """Every figure that says how fast the device is, measured where it can be; `say` is told which one comes next.
    Raises what `bench` does."""
    card: dict[str, float] | str = {}
    for key, figure in device.figures.items():
        if key in (*NO_SPEED, *DERIVED):
            continue
        node, note = None, LEFT_OUT
        if not quick or key in QUICK:
            say(f"{device.name}: {KINDS[key].meaning}")
            try:
                if key in CARD:
                    card = card or _card(device, bench)
                    node, note = _of_card(card, key)
                else:
                    node, note = _figure(device, key, bench)
            except NotMeasured as why:
                note = str(why)
        role = CALIBRATED if key in INPUTS else PREDICTED
        yield Row(device.name, key, role, KINDS[key].unit, figure.value, figure.source, node, note)
    yield from _training(device, quick, bench, say)


def _figure(device: DeviceProfile, key: str, bench: Measurer) -> tuple[float, str]:
    if key == "nic_tcp":
        return bench.tcp(device.name), f"one TCP connection between two nodes, time scale {TCP_SCALE:g}"
    if key.startswith("sevenzip_"):
        cores = int(device.cores.value) if device.cores and key == "sevenzip_all" else 1
        return bench.sevenzip(device.name, cores), (
            f"a node of {counted(cores, 'core')}, `calibrate: sevenzip`, time scale {SEVENZIP_SCALE:g}"
        )
    if device.figure("hpl") is None:
        raise NotMeasured("the device has no hpl to be calibrated by")
    if key == "hpl":
        return bench.hpl(device.name)
    if key in KERNELS:
        return bench.kernel(device.name, "linpack", KERNELS[key]), MEMORY_NOTE
    raise NotMeasured("nothing measures it in a node")


def _card(device: DeviceProfile, bench: Measurer) -> dict[str, float] | str:
    """What all four rows of the card are read from, measured once; or why they are not."""
    try:
        return bench.card(device.name)
    except NotMeasured as why:
        return str(why)


def _of_card(card: dict[str, float] | str, key: str) -> tuple[float, str]:
    if isinstance(card, str):
        raise NotMeasured(card)
    return card[key], f"O_DIRECT, time scale {CARD_SCALE:g}"


def _training(device: DeviceProfile, quick: bool, bench: Measurer, say: Callable[[str], None]) -> Iterator[Row]:
    known, measured = roofline.of(device), roofline.training(device)
    source = {one.model: one.source for one in device.training}
    for model in references():
        if model not in measured:
            continue
        modelled = None if known is None else known.seconds(reference(model))
        key, node, note = f"train_{model}", None, ""
        if known is None:
            note = "the device has too few figures for the workload model"
        elif quick and key not in QUICK:
            note = LEFT_OUT
        elif find_spec(PACKAGE) is None:
            note = f"the package {PACKAGE}, which has the models, is not installed"
        else:
            say(f"{device.name}: a training step of {model}")
            node, apart = bench.step(device.name, model)
            note = f"capped as the workload model says; the median of {STEPS} nodes, {apart * 100:.0f} % apart"
        role = CALIBRATED if model in roofline.FIT else PREDICTED
        yield Row(device.name, key, role, "s", measured[model], source[model], node, note, modelled)
