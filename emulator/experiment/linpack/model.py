"""What an experiment file of kind linpack says: typed, with defaults."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from emulator.devices.units import Flops
from emulator.experiment.model import Strict
from emulator.topology.model import Scale

_GRID = re.compile(r"^([1-9][0-9]{0,3})x([1-9][0-9]{0,3})$")


def _grid(text: str) -> str:
    if not _GRID.match(text):
        raise ValueError("it must be rows x columns, like 1x4")
    return text


def _rate(value: Flops) -> Flops:
    if value <= 0:
        raise ValueError("it must be more than 0")
    return value


class ReferenceModel(Strict):
    """What somebody measured on so many boards; `device` is the profile that it holds for."""

    device: str
    nodes: int = Field(ge=1)
    hpl: Annotated[Flops, AfterValidator(_rate)]
    source: str = Field(min_length=1)


class LinpackModel(Strict):
    """A whole experiment of kind linpack. `topology` is relative to the file; `nodes` are the counts to run on, taken
    in the topology's order; `n` is the order of the system, `block` the block size that HPL calls NB."""

    kind: Literal["linpack"]
    description: str = ""
    topology: str
    device: str | None = None
    nodes: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field((1,), min_length=1)
    n: int = Field(8000, ge=1, le=1_000_000)
    block: int = Field(128, ge=1, le=4096)
    grids: dict[int, Annotated[str, AfterValidator(_grid)]] = Field(default_factory=dict)
    references: tuple[ReferenceModel, ...] = ()
    time_scale: Scale = 1.0
    seed: int = Field(0, ge=0, lt=2**31)
    repeats: int = Field(1, ge=1, le=1000)

    @model_validator(mode="after")
    def _together(self) -> LinpackModel:
        if len(set(self.nodes)) < len(self.nodes):
            raise ValueError(f"the node counts {list(self.nodes)} name one twice")
        for count, text in self.grids.items():
            if count not in self.nodes:
                raise ValueError(
                    f"a grid is given for {count} nodes, which are not among the counts {list(self.nodes)}"
                )
            rows, columns = self.grid(count)
            if rows * columns != count:
                raise ValueError(f"a grid of {text} needs {rows * columns} nodes, not {count}")
        return self

    def grid(self, nodes: int) -> tuple[int, int]:
        """Rows and columns of processes on so many nodes: the file's, else one row.

        One row, since then no pivot has to be agreed on over the network: with rows of Ethernet that costs a round
        trip for each of the n columns.
        """
        found = _GRID.match(self.grids.get(nodes, f"1x{nodes}"))
        assert found is not None, "the model refuses any other text"
        return int(found[1]), int(found[2])
