"""Exchanges: the algorithms between workers and server. One file an algorithm, named after its paper's authors
where two share a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from emulator.training import compressors, plugins

if TYPE_CHECKING:
    from emulator.training.exchanges.base import Exchange
    from emulator.training.layout import Layout
    from emulator.training.spec import Variant

NAMES = {
    "asgd": "emulator.training.exchanges.asgd:Asgd",
    "comp-asgd": "emulator.training.exchanges.comp_asgd:CompAsgd",
    "adacomp": "emulator.training.exchanges.adacomp_hardy:AdaComp",
}


def build(variant: Variant, layout: Layout, seed: int) -> Exchange:
    """The exchange of a variant with its compressor; raises ExperimentError for a name that is not known."""
    kind = plugins.find("exchanges", variant.exchange, NAMES)
    name = kind.default_compressor if variant.compressor == "none" else variant.compressor
    return cast("Exchange", kind(layout, variant, seed, compressors.build(name, layout, variant, seed)))
