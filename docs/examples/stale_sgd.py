"""An exchange of one's own: staleness-aware ASGD, each step divided by its staleness (Zhang et al., 1511.05950)."""

from emulator.training.compressors.base import Update
from emulator.training.exchanges.asgd import Asgd
from emulator.training.exchanges.base import Applied
from emulator.training.layout import Array


class StalenessAware(Asgd):
    """x <- x - lr / max(1, staleness) * g; dense unless the variant names a compressor."""

    def _step(self, parameters: Array, update: Update, pulled: int) -> Applied:
        staleness = self.iteration - pulled
        step = self.learning_rate / max(1, staleness) * update.values
        if update.indices is None:
            parameters -= step
        else:
            parameters[update.indices] -= step
        return Applied(staleness)
