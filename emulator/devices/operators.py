"""Counts the operators of a torch model's training step, as torch dispatches them.

Imports torch: only for programs of their own. The counts come from shapes alone, so a model on torch's `meta` device,
which computes nothing, is counted in an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from emulator.core.errors import ExperimentError
from emulator.devices.workload import Operator, Step, merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.devices.workload import Kind, Phase

    Shape = tuple[int, ...]

aten = torch.ops.aten
#: bytes of a number (fp32)
WIDTH = 4
#: the edge of a transformed tile
_TILE = 8

#: Operators that go through a tensor more than once: batch normalisation reads its input for the statistics and again
#: to apply them, and so backward with the gradient beside it.
_AGAIN = {aten.native_batch_norm: 1, aten.native_batch_norm_backward: 2}
_CONVOLUTION, _BACKWARD = aten.convolution, aten.convolution_backward
_PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
#: they move nothing: a tensor's shape, or memory without contents
_FREE = (aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided)


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, every operator that torch dispatches is counted, under the phase last told."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.found: list[Operator] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.found += _count(func, args, kwargs or {}, out, self.phase)
        return out

    @contextmanager
    def counting(self, phase: Phase) -> Iterator[None]:
        """Count what happens inside under that phase."""
        self.phase = phase
        with self:
            yield


def step(name: str, module: torch.nn.Module, batch: int, image: int, channels: int = 3, momentum: float = 0.0) -> Step:
    """A step of a classifier of square images, trained by SGD. Raises ExperimentError for one that torch cannot run
    on `meta` tensors, or in which no operator of torch is found."""
    try:
        operators = _trained(module, torch.empty(batch, channels, image, image, device="meta"), momentum)
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _refused(name, f"cannot be counted ({reason})") from None
    parameters = sum(one.numel() for one in module.parameters())
    return _checked(Step(name, batch, image, parameters, operators))


def run(name: str, work: Callable[[], object], batch: int, image: int, parameters: int) -> Step:
    """What `work` does, as a forward and backward pass without an update; it really runs. Raises ExperimentError where
    it runs no operator of torch."""
    counter = Counter()
    with counter.counting("forward"):
        work()
    return _checked(Step(name, batch, image, parameters, merged(counter.found)))


def _checked(found: Step) -> Step:
    if not found.operators:
        raise _refused(found.model, "runs no operator of torch")
    return found


def _refused(name: str, what: str) -> ExperimentError:
    return ExperimentError(
        f"the operators of model {name!r}: it {what}",
        where="workload",
        fix="calibrate by another basis, like `linpack`",
    )


def _trained(module: torch.nn.Module, images: torch.Tensor, momentum: float) -> tuple[Operator, ...]:
    module = module.to("meta").train()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=momentum, foreach=False)
    labels = torch.zeros(len(images), dtype=torch.long, device="meta")
    counter = Counter()
    with counter.counting("forward"):
        loss = torch.nn.functional.cross_entropy(module(images), labels)
    with counter.counting("backward"):
        loss.backward()  # type: ignore[no-untyped-call]
    with counter.counting("update"):
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)
    return merged(counter.found)


def _count(func: Any, args: Any, kwargs: Any, out: Any, phase: Phase) -> list[Operator]:
    packet = func.overloadpacket
    if packet is _CONVOLUTION:
        image, weight = args[0], args[1]
        return [_convolution(image.shape, weight.shape, out.shape, args[3], args[8], phase)]
    if packet is _BACKWARD:
        gradient, image, weight = args[0], args[1], args[2]
        one = _convolution(image.shape, weight.shape, gradient.shape, args[4], args[9], "backward")
        # The mask says which gradients are asked for: of the input, the weights, and the bias.
        return [one] * sum(args[10][:2])
    if func.is_view or packet in _FREE:
        return []
    moved = _bytes(args) + _bytes(kwargs.values()) + _bytes([out])
    if packet in _PRODUCTS:
        a, b = (args[1], args[2]) if packet in (aten.addmm, aten.baddbmm) else (args[0], args[1])
        return [Operator("matrix", phase, 2.0 * prod(a.shape) * b.shape[-1], moved)]
    moved += _AGAIN.get(packet, 0) * _bytes([out[0]] if isinstance(out, (tuple, list)) else [out])
    return [Operator("pass", phase, 0.0, moved)]


def _convolution(image: Shape, weight: Shape, out: Shape, stride: Any, groups: int, phase: Phase) -> Operator:
    """One of the three products of a convolution (output, gradient of the input, gradient of the weights): they have
    the same three matrices, of which two are read and one is written."""
    filters, depth, *window = weight
    pixels = out[0] * prod(out[2:])
    flops = 2.0 * pixels * filters * depth * prod(window)
    # A 1 x 1 window that goes step by step is a matrix already.
    plain = prod(window) == 1 and set(stride) == {1}
    unfolded = 0.0 if plain else float(WIDTH * pixels * image[1] * prod(window))
    moved = float(WIDTH * (prod(image) + prod(weight) + prod(out)))
    tiles, tile_flops = _tiles(image, weight, out, stride) if phase == "forward" else (0.0, 0.0)
    kind: Kind = "depthwise" if groups > 1 and depth == 1 else "matrix"
    return Operator(kind, phase, flops, moved, unfolded, tiles, tile_flops)


def _tiles(image: Shape, weight: Shape, out: Shape, stride: Any) -> tuple[float, float]:
    """Bytes written and read of input, output and filters in transformed tiles of 8 x 8, and the operations of their
    products, as NNPACK does it; zeros where it does not. Public source: Maratyszcza/NNPACK, convolution-output.c and
    bench/convolution.cc (2 operations for each of 64 elements by Winograd, for 3 x 3 windows, else 4 by Fourier)."""
    filters, depth, *window = weight
    if len(window) != 2 or max(window) > _TILE or set(stride) != {1}:
        return 0.0, 0.0
    count = out[0] * prod(ceil(size / (_TILE + 1 - edge)) for size, edge in zip(out[2:], window, strict=True))
    tiles = count * (image[1] + filters) + filters * depth
    each = 2.0 if window == [3, 3] else 4.0
    return 2.0 * WIDTH * _TILE**2 * tiles, each * _TILE**2 * count * filters * depth


def _bytes(values: Iterable[Any]) -> float:
    """Bytes of all tensors in there."""
    found = 0.0
    for one in values:
        if isinstance(one, torch.Tensor):
            found += one.numel() * one.element_size()
        elif isinstance(one, (tuple, list)):
            found += _bytes(one)
    return found
