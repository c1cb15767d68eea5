"""CG3, labels (paper 3.1, Algorithm 2 line 18): the output layer. The loss and the scores are in task.py.

Runs at the label holder. It sees z_L and its own labels; what leaves is the gradient of z_L for the training rows, to
the server. Loss, accuracy and predictions stay here.
"""

import torch
from torch import nn

from vfgnn.model.initialisation import widen
from vfgnn.settings import Settings


class OutputLayer(nn.Module):
    """logits = W_L z_L + b; softmax is part of the loss."""

    def __init__(self, settings: Settings, hidden_dim: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_dim, classes)
        widen([self.linear.weight], settings.output_scale)
        self.to(settings.dtype)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Logits [rows, classes]."""
        logits: torch.Tensor = self.linear(z)
        return logits
