"""Which epoch's weights are kept, and when training stops: by the evaluations of validation rows alone.

Runs at the label holder, and in the pooled model that a federation is compared with. It sees scores; what the label
holder makes of it, one bit `improved` and one bit `stop`, goes to everyone.
"""

import torch

from vfgnn.model.task import Evaluation


class EpochChoice:
    """The best epoch so far: the one with the highest score, the earliest of those with the same."""

    def __init__(self, *, patience: int | None) -> None:
        self._patience = patience
        self._best_score, self.best_accuracy, self.best_epoch = -1.0, 0.0, 0

    def hear(self, epoch: int, found: Evaluation) -> bool:
        """Take in the evaluation of an epoch. True if it is the best so far; the first one is, whatever its score."""
        improved = found.score > self._best_score or self.best_epoch == 0
        if improved:
            self._best_score, self.best_accuracy, self.best_epoch = found.score, found.accuracy, epoch
        return improved

    def lost_patience(self, epoch: int) -> bool:
        """Whether the best epoch is `patience` epochs ago or more; never without patience."""
        return self._patience is not None and epoch - self.best_epoch >= self._patience

    def state(self) -> torch.Tensor:
        """Its three numbers [3], for a checkpoint."""
        return torch.tensor([self._best_score, self.best_accuracy, self.best_epoch], dtype=torch.float64)

    def load(self, state: torch.Tensor) -> None:
        """Go on from them."""
        self._best_score, self.best_accuracy, epoch = state.tolist()
        self.best_epoch = int(epoch)
