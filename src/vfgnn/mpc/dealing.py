"""The dealer's side of the correlations: the corrections U_k V - Z and U_k^T V - Z of every product.

Runs at the dealer. It sees sizes and its own random numbers; what leaves is one correction per product and receiver.
"""

from collections.abc import Mapping

import torch

from vfgnn.mpc.correlations import Direction, Masks
from vfgnn.mpc.kernels import DenseMatrix


class Dealt:
    """The dealer's side: the corrections of every product."""

    def __init__(self, masks: Mapping[str, Masks], columns: Mapping[str, int], nodes: int, dim: int) -> None:
        self._masks, self._columns, self._nodes, self._dim = masks, columns, nodes, dim
        self._u = {owner: DenseMatrix(masks[owner].features(nodes, count)) for owner, count in columns.items()}

    def correction(self, receiver: str, direction: Direction, counter: int, dim: int | None = None) -> torch.Tensor:
        """Forward: sum over owners of U V - Z [nodes, d]. Backward: U^T V - Z of all owners, stacked [sum p, d]."""
        parts, width = [], dim or self._dim
        for owner, columns in self._columns.items():
            if owner == receiver:
                continue
            u, narrow, wide = self._u[owner], (columns, width), (self._nodes, width)
            before, after = (narrow, wide) if direction == "forward" else (wide, narrow)
            v = self._masks[receiver].operand(owner, direction, counter, before)
            z = self._masks[owner].result(receiver, direction, counter, after)
            parts.append((u.times(v) if direction == "forward" else u.transpose_times(v)).sub_(z))
        if direction == "backward":
            return torch.cat(parts)
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total
