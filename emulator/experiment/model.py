"""What an experiment file says: typed, with defaults. Times are emulated."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from emulator.core.units import Delay
from emulator.topology.model import Scale
from emulator.training.spec import LAST

#: a variant's name is also a directory's
VARIANT_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,39}$")


def _positive(value: Delay) -> Delay:
    if value <= 0:
        raise ValueError("it must be longer than 0 s")
    return value


Span = Annotated[Delay, AfterValidator(_positive)]
Unit = Annotated[float, Field(gt=0, le=1)]


class Strict(BaseModel):
    """Unknown keys are refused, and nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class WorkloadModel(Strict):
    """What is trained: model and data set by name or `path.py:Name`, and how the data is shared out."""

    model: str = "mnist-cnn"
    dataset: str = "mnist"
    batch: int = Field(10, ge=1, le=65536)
    sharding: Literal["contiguous", "iid", "dirichlet"] = "contiguous"
    shards: int = Field(1200, ge=1)
    alpha: float = Field(0.5, gt=0)
    standardize: bool = True
    options: dict[str, Any] = Field(default_factory=dict)


class VariantModel(Strict):
    """How it is trained. `c` is the share of a gradient's entries that a compressing exchange sends."""

    exchange: str
    compressor: str = "none"
    c: Unit = 0.01
    learning_rate: float = Field(gt=0, le=1000, allow_inf_nan=False)
    options: dict[str, Any] = Field(default_factory=dict)


class ExperimentModel(Strict):
    """A whole experiment. `topology` is relative to the file; the budget is the same for every variant.

    `calibrate`: nodes that leave it to emu are worth what this workload's step says ("auto"), or what the device's own
    figure says, as in a lab without a workload ("device").
    """

    kind: Literal["training"] = "training"
    description: str = ""
    topology: str
    workload: WorkloadModel = Field(default_factory=WorkloadModel)
    variants: dict[str, VariantModel] = Field(min_length=1)
    baseline: str | None = None
    budget: Span
    evaluate_every: Span
    evaluate_last: Span | None = None
    max_updates: int | None = Field(None, ge=1)
    save_parameters: bool = False
    time_scale: Scale = 1.0
    calibrate: Literal["auto", "device"] = "auto"
    seed: int = Field(0, ge=0, lt=2**31)
    repeats: int = Field(1, ge=1, le=1000)

    @model_validator(mode="after")
    def _together(self) -> ExperimentModel:
        for name in self.variants:
            if not VARIANT_NAME.match(name):
                raise ValueError(f"variant name {name!r} must be up to 40 of a-z, 0-9, '.', '_' and '-'")
        if self.baseline is not None and self.baseline not in self.variants:
            raise ValueError(f"baseline {self.baseline!r} is not a variant; it has {', '.join(self.variants)}")
        if self.evaluate_every > self.budget:
            raise ValueError(f"evaluate_every ({self.evaluate_every}) is longer than the budget ({self.budget})")
        if self.evaluate_last is not None and (LAST - 1) * self.evaluate_last >= self.budget:
            raise ValueError(f"the last {LAST} evaluations, {self.evaluate_last} apart, do not fit into {self.budget}")
        return self

    def dense_baseline(self) -> str | None:
        """The variant that reductions are relative to: the one named, else the first that is plain asgd."""
        if self.baseline is not None:
            return self.baseline
        plain = (name for name, item in self.variants.items() if item.exchange == "asgd" and item.compressor == "none")
        return next(plain, None)
