"""Compressors: what of a gradient travels, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from emulator.training import plugins

if TYPE_CHECKING:
    from emulator.training.compressors.base import Compressor
    from emulator.training.layout import Layout
    from emulator.training.spec import Variant

NAMES = {
    "dense": "emulator.training.compressors.dense:Dense",
    "top-k": "emulator.training.compressors.top_k:TopK",
}


def build(name: str, layout: Layout, variant: Variant, seed: int) -> Compressor:
    """The compressor of that name for a model's layout; raises ExperimentError if there is none."""
    return cast("Compressor", plugins.find("compressors", name, NAMES)(layout, variant, seed))
