"""A convolution forward and backward in torch, in three shapes that training on small devices is made of."""

from __future__ import annotations

import torch

from emulator.devices.kernels.reading import Work


def large(threads: int, batch: int = 8) -> Work:
    """The 3x3 layers of ResNet-18's first stage at 224x224, where most of its time goes."""
    return _conv(threads, batch=batch, channels=64, out=64, edge=56)


def small(threads: int) -> Work:
    """The second layer of a small network for 28x28 images (20 times less work): 10 images."""
    return _conv(threads, batch=10, channels=32, out=64, edge=14)


def depthwise(threads: int) -> Work:
    """One filter for each channel, as in MobileNets: 8 images. Bound by memory and by code, not by arithmetic."""
    return _conv(threads, batch=8, channels=144, out=144, edge=56, groups=144)


def _conv(threads: int, *, batch: int, channels: int, out: int, edge: int, groups: int = 1) -> Work:
    """3x3, same padding. Multiplications and additions of the output count twice over again for the backward pass,
    which makes the gradients of the input and of the weights."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(channels, out, 3, padding=1, groups=groups, bias=False)
    image = torch.randn(batch, channels, edge, edge, requires_grad=True)
    gradient = torch.randn(batch, out, edge, edge)

    def run() -> None:
        image.grad = layer.weight.grad = None
        layer(image).backward(gradient)

    forward = 2 * batch * out * edge**2 * channels // groups * 9
    kind = "depthwise, " if groups > 1 else ""
    return Work(run, 3 * forward, "FLOP", f"{kind}{batch}x{channels}x{edge}x{edge} -> {out}, 3x3")
