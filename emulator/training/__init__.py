"""What runs inside a node: roles, exchanges, models, data. Imports only core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.training.spec import Workload


def preload(workload: Workload) -> None:
    """Import all that the roles of a workload will need, the framework first of all.

    For the warmed process that forks roles: nothing here computes, so no parallel region is ever run, and no thread
    started but those of numpy's BLAS, which starts them at import unless OPENBLAS_NUM_THREADS is 1. Raises
    ExperimentError for a model or data set that is not known.
    """
    # evaluation is for the evaluator, which is forked from the same process.
    from emulator.training import compressors, data, evaluation, exchanges, models, plugins, roles  # noqa: F401

    for names, group in ((exchanges.NAMES, "exchanges"), (compressors.NAMES, "compressors"), (roles.NAMES, "roles")):
        for name in names:
            plugins.find(group, name, names)
    plugins.find("models", workload.model, models.NAMES)
    plugins.find("datasets", workload.dataset, data.NAMES)
