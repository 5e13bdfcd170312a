"""Experiments: a topology, a workload and variants of how to train it, run under one emulated-time budget each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.experiment.result import ExperimentResult, VariantResult
    from emulator.experiment.run import Options, run_experiment

__all__ = ["ExperimentResult", "Options", "VariantResult", "run_experiment"]


def __getattr__(name: str) -> Any:
    if name in ("Options", "run_experiment"):
        from emulator.experiment import run

        return getattr(run, name)
    if name in ("ExperimentResult", "VariantResult"):
        from emulator.experiment import result

        return getattr(result, name)
    raise AttributeError(f"module 'emulator.experiment' has no attribute {name!r}")
