"""CG3, labels (paper 3.1, Algorithm 2 line 18): the output layer, the loss and the predictions.

Runs at the label holder. It sees z_L and its own labels; what leaves is the gradient of z_L for the training rows, to
the server. Loss, accuracy and predictions stay here.
"""

import torch
import torch.nn.functional as F
from torch import nn

from vfgnn.config import Settings


def class_weights(settings: Settings, y: torch.Tensor, classes: int) -> torch.Tensor | None:
    """What a row of each class counts in the loss; `balanced`: every class the same in all, by the training rows."""
    if settings.class_weights == "none":
        return None
    counts = torch.bincount(y, minlength=classes).to(settings.dtype)
    return len(y) / (counts.clamp_min(1) * (counts > 0).sum())


class OutputLayer(nn.Module):
    """logits = W_L z_L + b; softmax is part of the loss."""

    def __init__(self, settings: Settings, hidden_dim: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_dim, classes)
        self.to(settings.dtype)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Logits [rows, classes]."""
        logits: torch.Tensor = self.linear(z)
        return logits

    def loss(
        self, z: torch.Tensor, y: torch.Tensor, *, weights: torch.Tensor | None = None, keeps: float | None = None
    ) -> torch.Tensor:
        """Mean cross-entropy over the training rows, each weighted by its class (`class_weights`).

        `keeps`: y went through randomised response and is the true class with this probability; the predicted
        distribution then goes through it too (forward correction), so that the best fit is that of the true labels.
        """
        logits = self(z)
        if keeps is None:
            return F.cross_entropy(logits, y, weight=weights)
        other = (1 - keeps) / (logits.shape[1] - 1)
        return F.nll_loss((other + (keeps - other) * logits.softmax(dim=1)).log(), y, weight=weights)
