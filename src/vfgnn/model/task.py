"""What is learnt: the class of a node. Its loss, its scores, and what is predicted from logits.

Runs at the label holder, on its own labels, and in the pooled model that a federation is compared with. It sees logits
and labels; nothing leaves.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from vfgnn.model import metrics
from vfgnn.privacy.input_perturbation import keep_probability
from vfgnn.settings import Settings


@dataclass(frozen=True)
class Evaluation:
    """How good the weights of one epoch are on the validation rows."""

    score: float  # what the epoch is chosen by
    accuracy: float


@dataclass(frozen=True)
class NodeClassification:
    """One of `classes` for each node. Logits are [rows, classes], y and predictions [rows]."""

    settings: Settings
    classes: int
    noised: bool  # whether y went through randomised response where the settings say so; never in the pooled model

    def class_weights(self, y: torch.Tensor) -> torch.Tensor | None:
        """What a row of each class counts in the loss; `balanced`: every class the same in all.

        `y` has the classes of all training rows, not those of one batch.
        """
        if self.settings.class_weights == "none":
            return None
        counts = torch.bincount(y, minlength=self.classes).to(self.settings.dtype)
        return len(y) / (counts.clamp_min(1) * (counts > 0).sum())

    def loss(self, logits: torch.Tensor, y: torch.Tensor, *, weights: torch.Tensor | None) -> torch.Tensor:
        """Mean cross-entropy over the rows, each weighted by its class (`class_weights`).

        With `label_correction`, y is the true class with a known probability. The predicted distribution then goes
        through randomised response too (forward correction), so that the best fit is that of the true labels.
        """
        keeps = self._keeps
        if keeps is None:
            return F.cross_entropy(logits, y, weight=weights)
        other = (1 - keeps) / (self.classes - 1)
        return F.nll_loss((other + (keeps - other) * logits.softmax(dim=1)).log(), y, weight=weights)

    def evaluate(self, logits: torch.Tensor, y: torch.Tensor) -> Evaluation:
        """By `select_by`, or by accuracy where that metric is not defined for these rows."""
        accuracy = metrics.accuracy(logits, y)
        score = metrics.score(logits, y, self.settings.select_by)
        return Evaluation(score=accuracy if math.isnan(score) else score, accuracy=accuracy)

    def scores(self, logits: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
        """All that are defined, by name."""
        return metrics.scores(logits, y)

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Of each class, in float64 [rows, classes]."""
        return metrics.probabilities(logits)

    def predictions(self, logits: torch.Tensor) -> torch.Tensor:
        """The most likely class of each row [rows]."""
        return metrics.predictions(logits)

    @property
    def _keeps(self) -> float | None:
        """Where the loss is to be corrected for noised labels: how likely a label is still the true one."""
        privacy = self.settings.privacy
        if not self.noised or not privacy.label_correction or privacy.label_epsilon is None:
            return None
        return keep_probability(privacy.label_epsilon, self.classes)
