"""CG3, labels (paper 3.1, Algorithm 2 line 18): the output layer, the loss and the predictions.

Runs at the label holder. It sees z_L and its own labels; what leaves is the gradient of z_L for the training rows, to
the server. Loss, accuracy and predictions stay here.
"""

import torch
import torch.nn.functional as F
from torch import nn

from vfgnn.config import Settings


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

    def loss(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy over the training rows."""
        return F.cross_entropy(self(z), y)


def accuracy(logits: torch.Tensor, y: torch.Tensor) -> float:
    """The share of rows whose largest logit is that of their class."""
    return float((logits.argmax(dim=1) == y).double().mean())
