"""How long a training step takes on a device: its operators over what the device computes and moves in a second.

The model, for torch's own convolutions on ARM (what the published training figures were measured with: no oneDNN):

    seconds = products / (e x 2 x HPL)  +  passes / (m x STREAM)  +  tiles / STREAM

- `products`: floating-point operations of matrix products. A dense convolution is unfolded and multiplied; for a
  batch of at least `TILED_BATCH`, torch's forward pass hands one that goes pixel by pixel to NNPACK instead, which
  transforms tiles (fewer operations for 3 x 3, more for 1 x 1). Single precision does twice HPL's rate.
- `passes`: bytes of tensors that operators read and write one after another. A depthwise convolution has no product
  to speak of: it moves its unfolded input, written and read. Little of STREAM's rate is reached, for each result
  goes to memory that the kernel has just handed out and must first clear.
- `tiles`: bytes of NNPACK's transformed tiles, which go through a buffer that is kept, at STREAM's rate.

The terms add up, as each loop waits for the one before. HPL and STREAM are the device's; the two efficiencies e and m
are what makes `FIT`, and nothing else, come out as measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.core.errors import DeviceError
from emulator.devices.workload import Step, reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.devices.profile import DeviceProfile

#: the models whose measured steps set the two efficiencies; all others are predictions
FIT = ("resnet18", "mobilenetv3_large")
#: torch's rule: NNPACK from this batch on (aten/src/ATen/native/Convolution.cpp, use_nnpack)
TILED_BATCH = 16
#: a processor's single-precision product does no more than this times twice its HPL
MOST_EFFICIENT = 1.5
#: the device whose roofline is taken over where one has too few figures, and by which of its own it is scaled
DONOR = "rpi-4"
COMPUTE, MEMORY = ("sgemm", "hpl"), ("stream_triad", "memcpy")


@dataclass(frozen=True)
class Load:
    """What a step asks of a device: operations of products, bytes of passes, bytes of tiles."""

    products: float
    passes: float
    tiles: float


def load(step: Step) -> Load:
    """A step's operators, as torch does them on ARM."""
    products = passes = tiles = 0.0
    for one in step.operators:
        passes += one.bytes
        if one.tiles and step.batch >= TILED_BATCH:
            tiles += one.tiles
            products += one.tile_flops if one.kind == "matrix" else 0.0
        elif one.kind == "depthwise":
            passes += 2 * one.unfolded
        else:
            products += one.flops
    return Load(products, passes, tiles)


@dataclass(frozen=True)
class Roofline:
    """A device: FLOP/s of single-precision products, and bytes/s of passes and of tiles. `derived` says what was taken
    over from another device, empty for nothing."""

    products: float
    passes: float
    tiles: float
    derived: str = ""

    def seconds(self, step: Step) -> float:
        """Seconds that one step takes on all of the device's cores."""
        asked = load(step)
        return asked.products / self.products + asked.passes / self.passes + asked.tiles / self.tiles


def fit(hpl: float, stream: float, measured: Mapping[str, float]) -> Roofline:
    """The roofline of a device by its HPL (FLOP/s, double), STREAM (B/s) and seconds of the steps in `FIT`; other
    entries of `measured` are not looked at.

    Two equations, two unknowns. Raises ValueError where no device can be like that: a rate below nothing, or products
    faster than `MOST_EFFICIENT` times twice HPL, or passes faster than STREAM.
    """
    one, two = (load(reference(model)) for model in FIT)
    left, right = (measured[model] - asked.tiles / stream for model, asked in zip(FIT, (one, two), strict=True))
    determinant = one.products * two.passes - two.products * one.passes
    per_flop = (left * two.passes - right * one.passes) / determinant
    per_byte = (one.products * right - two.products * left) / determinant
    if per_flop <= 0 or per_byte <= 0:
        raise ValueError("the training figures contradict each other")
    found = Roofline(1 / per_flop, 1 / per_byte, stream)
    if found.products > MOST_EFFICIENT * 2 * hpl:
        raise ValueError(f"the training figures ask for {found.products / 1e9:.3g} GFLOPS, far beyond twice HPL")
    if found.passes > stream:
        raise ValueError(f"the training figures ask for {found.passes / 1e9:.3g} GB/s, beyond STREAM")
    return found


def of(device: DeviceProfile) -> Roofline | None:
    """The roofline of a device: fitted on its own figures, else another's, scaled; None where too little of it is
    known. Raises DeviceError where its figures contradict each other."""
    measured = training(device)
    hpl, stream = device.figure("hpl"), device.figure("stream_triad")
    if hpl and stream and all(model in measured for model in FIT):
        try:
            return fit(hpl.value, stream.value, measured)
        except ValueError as error:
            raise DeviceError(
                f"{device.name}: {error}",
                where=str(device.path),
                fix="check hpl, stream_triad and the training seconds of resnet18 and mobilenetv3_large",
            ) from None
    return _taken_over(device)


def training(device: DeviceProfile) -> dict[str, float]:
    """Seconds of the device's measured steps, of those that are like the reference steps in batch and image."""
    found = {}
    for one in device.training:
        try:
            like = reference(one.model)
        except KeyError:
            continue
        if (one.batch, one.image) == (like.batch, like.image):
            found[one.model] = one.seconds
    return found


def _taken_over(device: DeviceProfile) -> Roofline | None:
    """`DONOR`'s roofline, each rate scaled by a figure that both devices have."""
    from emulator.devices.profile import profile

    donor = profile(DONOR)
    known = of(donor) if device.name != donor.name else None
    compute, memory = _ratio(device, donor, COMPUTE), _ratio(device, donor, MEMORY)
    if known is None or compute is None or memory is None:
        return None
    return Roofline(
        known.products * compute.factor,
        known.passes * memory.factor,
        known.tiles * memory.factor,
        f"the {DONOR}'s, products {compute}, memory {memory}",
    )


@dataclass(frozen=True)
class _Ratio:
    factor: float
    by: str

    def __str__(self) -> str:
        return f"x {self.factor:.3g} by {self.by}"


def _ratio(device: DeviceProfile, donor: DeviceProfile, names: tuple[str, ...]) -> _Ratio | None:
    """How many times faster than the donor, by the first figure that both have; as fast where the core is the same."""
    for name in names:
        mine, other = device.figure(name), donor.figure(name)
        if mine and other:
            return _Ratio(mine.value / other.value, name)
    return _Ratio(1.0, "its processor, which is the same") if device.cpu_model == donor.cpu_model else None
