"""What one core of a device is worth on this host, by a figure that both have: `calibrate` in a topology.

Each basis is a function that gives a `Basis`: the device's rate and this host's speed in the same unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError
from emulator.devices import delivery
from emulator.devices.speed import Speed

if TYPE_CHECKING:
    from emulator.devices.host import HostSpeed
    from emulator.devices.profile import DeviceProfile
    from emulator.devices.workload import Own

AUTO, LINPACK, TRAIN = "auto", "linpack", "train:"
#: what auto comes to in an experiment
OWN = "workload"
#: what auto comes to, besides linpack
SGEMM, HOST = "sgemm", "host"
#: for programs that are no arithmetic
SEVENZIP = "sevenzip"
#: host cores that one device core may be said to be worth
LEAST_FACTOR, MOST_FACTOR = 1e-4, 1e3
HOST_CORES = "host cores"
NAMED = (AUTO, SGEMM, LINPACK, SEVENZIP)
CHOICE = f"{', '.join(NAMED)}, {TRAIN}MODEL or a number of host cores"


@dataclass(frozen=True)
class Basis:
    """`core` is what one core of the device does in an emulated second, `speed` what this host does in a real one, in
    the same unit. `name` is how the file would ask for it, `figures` says both to a person. `charged` is what one core
    of the device does in an emulated second of what the virtual clock charges (FLOP/s), where the basis knows (0 = as
    its worth in this host's SGEMM).
    """

    name: str
    core: float
    speed: Speed
    figures: str
    charged: float = 0.0

    def cpus(self, cpus: float, time_scale: float, cores: int, busy: float = 1.0) -> float:
        """Host cores that so many device cores are worth, while `busy` host cores are in use."""
        return self.speed.cpus(cpus * self.core / time_scale, cores, busy)

    @property
    def work(self) -> str:
        """Which kind of work it stands for, of `delivery`'s."""
        matrices = self.name == LINPACK or self.speed.unit == HOST_CORES
        return delivery.MATRIX if matrices else delivery.TRAINING

    @property
    def worth(self) -> float:
        """Host cores that one device core is worth at time scale 1 on an otherwise idle host."""
        return self.core / self.speed.one


def basis(asked: str | float, device: DeviceProfile, host: HostSpeed, time_scale: float) -> Basis:
    """The basis that a file asks for. Raises TopologyError where the device has no figure for it, or it is not known;
    HostError where this host cannot be measured."""
    if isinstance(asked, (int, float)):
        return factor(asked, host)
    if asked == AUTO:
        found = None if host.auto is None else own(host.auto, device, host)
        return found or auto(device, host, time_scale)
    if asked == LINPACK:
        return linpack(device, host)
    if asked.startswith(TRAIN):
        return train(asked.removeprefix(TRAIN), device, host)
    if asked == SGEMM:
        return sgemm(device, host)
    if asked == SEVENZIP:
        return sevenzip(device, host)
    raise TopologyError(f"{asked!r} is no basis of calibration", fix=f"use {CHOICE}")


def factor(asked: float, host: HostSpeed) -> Basis:
    """A core of the device is worth so many of this host's at time scale 1, the file says."""
    return Basis(f"{asked:g}", float(asked), Speed.plain(1.0, host.cores, HOST_CORES), "as the file says")


def check_factor(value: float) -> None:
    """Raises ValueError, with the remedy after a semicolon, for what no core can be worth."""
    if not LEAST_FACTOR <= value <= MOST_FACTOR:
        raise ValueError(
            f"a device core cannot be worth {value!r} host cores; write {LEAST_FACTOR:g} to {MOST_FACTOR:g}"
        )


def auto(device: DeviceProfile, host: HostSpeed, time_scale: float) -> Basis:
    """The device's single-precision figure (from training, where it has one), else LINPACK; one without either (server,
    laptop) has this host's cores."""
    if device.core_gflops is not None:
        return sgemm(device, host)
    if _hpl(device) is not None:
        return linpack(device, host)
    # It has the host's clock as well: as fast as the host in real time, and so slower in emulated time under a small
    # time scale.
    return Basis(HOST, time_scale, Speed.plain(1.0, host.cores, HOST_CORES), "this host's own cores")


def sgemm(device: DeviceProfile, host: HostSpeed) -> Basis:
    """The device's single-precision figure against this host's SGEMM."""
    if device.core_gflops is None:
        raise TopologyError(
            f"{device.name} has no single-precision figure to be calibrated by",
            fix="use `calibrate: auto`, or a number",
        )
    speed, core = host.speed("sgemm"), device.core_gflops * 1e9
    return Basis(SGEMM, core, speed, _figures(core, speed, "single precision"))


def linpack(device: DeviceProfile, host: HostSpeed) -> Basis:
    """The device's HPL against this host's DGEMM, of which HPL comes to within a few per cent on a large problem."""
    hpl = _hpl(device)
    if hpl is None or device.cores is None:
        raise TopologyError(
            f"{device.name} has no LINPACK figure to be calibrated by", fix="use `calibrate: auto`, or a number"
        )
    speed, core = host.speed("dgemm"), hpl / device.cores.value
    return Basis(LINPACK, core, speed, _figures(core, speed, "double precision, HPL against DGEMM"))


def sevenzip(device: DeviceProfile, host: HostSpeed) -> Basis:
    """The device's 7-Zip rating against this host's: whole numbers, branches and tables, where wide vector units do not
    count as they do in matrix products."""
    figure = device.figure("sevenzip_all")
    if figure is None or device.cores is None:
        raise TopologyError(
            f"{device.name} has no 7-Zip figure to be calibrated by", fix="use `calibrate: auto`, or a number"
        )
    speed, core = host.speed("sevenzip"), figure.value / device.cores.value
    figures = f"{core:.4g} of {speed.one:.4g} MIPS, 7-Zip{_doubt(speed)}"
    return Basis(SEVENZIP, core, speed, figures)


def train(model: str, device: DeviceProfile, host: HostSpeed) -> Basis:
    """A training step of a reference model: what the workload model says that the device takes for it (which is what
    was measured for the two that it is fitted on) against what this host takes."""
    from emulator.devices import host_step, roofline
    from emulator.devices.workload import reference, references

    if model not in references():
        raise TopologyError(
            f"there is no reference model {model!r} to be calibrated by", fix=f"use one of {', '.join(references())}"
        )
    known, step = roofline.of(device), reference(model)
    if known is None or device.cores is None:
        raise TopologyError(
            f"how long a step of {model!r} takes on {device.name} is not known, nor can it be calibrated",
            fix="use `calibrate: auto`, linpack or a number",
        )
    seconds, (speed, how) = known.seconds(step), host_step.steps(step, host)
    return Basis(
        f"{TRAIN}{model}",
        1 / (seconds * device.cores.value),
        speed,
        f"a step of it takes {seconds:.3g} s there and {1 / speed.one:.3g} s on a core here, {how}{_doubt(speed)}",
    )


def own(workload: Own, device: DeviceProfile, host: HostSpeed) -> Basis | None:
    """An experiment's own step: what the workload model says that the device takes for it, against what this host
    takes. None where too little of the device is known."""
    from emulator.devices import roofline

    known = roofline.of(device)
    if known is None or device.cores is None:
        return None
    seconds, sgemm_here = known.seconds(workload.step), host.speed("sgemm")
    here = workload.seconds or workload.charged / sgemm_here.one
    # Of how cores disturb each other only SGEMM is known here.
    loaded, together = (rate / sgemm_here.one / here for rate in (sgemm_here.loaded, sgemm_here.all))
    derived = f", by {known.derived}" if known.derived else ""
    return Basis(
        OWN,
        1 / (seconds * device.cores.value),
        Speed("step/s", 1 / here, loaded, together, sgemm_here.spread, sgemm_here.busy),
        f"a step of {workload.step.model} of batch {workload.step.batch} takes {1e3 * seconds:.3g} ms there{derived}, "
        + (f"and {1e3 * here:.3g} ms on a core here" if workload.seconds else "on the virtual clock"),
        charged=workload.charged / (seconds * device.cores.value),
    )


def _hpl(device: DeviceProfile) -> float | None:
    """FLOP/s in double precision on all cores."""
    figure = device.figure("hpl")
    return None if figure is None else figure.value


def _figures(core: float, speed: Speed, kind: str) -> str:
    return f"{core / 1e9:.3g} of {speed.one / 1e9:.3g} GFLOPS, {kind}{_doubt(speed)}"


def _doubt(speed: Speed) -> str:
    """Who disturbed the measurement, if anybody did."""
    return f", measured while {speed.busy}" if speed.busy else ""
