"""Which training samples each worker has: a pure function of (seed, worker, number of workers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.core.errors import ExperimentError
from emulator.core.rng import stream

if TYPE_CHECKING:
    from emulator.training.layout import Array
    from emulator.training.spec import Workload


def indices(workload: Workload, labels: Array, worker: int, workers: int, seed: int) -> Array:
    """The sample numbers of a worker (counted from 0).

    Raises ExperimentError for a sharding that is not known or leaves the worker without samples.
    """
    if workload.sharding == "contiguous":
        mine = _contiguous(len(labels), workload.shards, worker, workers)
    elif workload.sharding == "iid":
        mine = np.sort(np.array_split(stream(seed, "sharding", "iid").permutation(len(labels)), workers)[worker])
    elif workload.sharding == "dirichlet":
        mine = _dirichlet(np.asarray(labels), workload.alpha, worker, workers, seed)
    else:
        raise ExperimentError(
            f"no sharding is called {workload.sharding!r}", where="workload", fix="use contiguous, iid or dirichlet"
        )
    if not mine.size:
        raise ExperimentError(
            f"worker {worker} of {workers} gets no samples by {workload.sharding} sharding",
            where="workload",
            fix="use fewer workers, more shards or a larger alpha",
        )
    return mine


def _contiguous(samples: int, shards: int, worker: int, workers: int) -> Array:
    """Equal runs of neighbouring shards, as Hardy et al.: 1,200 shards of 50 images, worker n the n-th run."""
    first, last = worker * shards // workers, (worker + 1) * shards // workers
    return np.arange(first * samples // shards, last * samples // shards)


def _dirichlet(labels: Array, alpha: float, worker: int, workers: int, seed: int) -> Array:
    """Of each class a share drawn from Dirichlet(alpha) (Hsu et al., arXiv 1909.06335); everyone has all samples."""
    if alpha <= 0:
        raise ExperimentError(f"alpha {alpha} is not positive", where="workload", fix="use 0.1 (skewed) to 100 (even)")
    rng = stream(seed, "sharding", "dirichlet")
    mine = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        cuts = np.round(np.cumsum(rng.dirichlet([alpha] * workers))[:-1] * len(members)).astype(int)
        mine.append(np.split(members, cuts)[worker])
    return np.sort(np.concatenate(mine))
