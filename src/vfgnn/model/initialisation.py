"""How wide a layer's weights begin, where torch's own width is not what is wanted. Runs where the layer is."""

from collections.abc import Iterable

import torch


def widen(weights: Iterable[torch.Tensor], scale: float) -> None:
    """Weights as they were drawn, `scale` times as large, in place."""
    with torch.no_grad():
        for weight in weights:
            weight.mul_(scale)
