"""Products with all holders' features on shares: X^T u and X W, whatever fraction bits a holder's features have.

Whole numbers have none. Real ones have some (formats.py): what meets them is cut by as many first, so every product is
LONG again.
Runs at the holders; nothing is revealed.
"""

from collections.abc import Mapping

import torch

from vfgnn.sealed.computation import Blocks, Computation


class SharedFeatures:
    """One holder's side. `bits`: the fraction bits of each feature holder's columns."""

    def __init__(self, bits: Mapping[str, int]) -> None:
        self._bits = bits

    def to_columns(self, computation: Computation, u: torch.Tensor) -> dict[str, torch.Tensor]:
        """X_k^T u of each k, LONG, from u [nodes, columns], LONG."""
        by_bits = {0: u}
        for bits in sorted(set(self._bits.values()) - {0}):
            (by_bits[bits],) = computation.truncate(u, bits=bits)
        columns = computation.to_columns({owner: by_bits[bits] for owner, bits in self._bits.items()})
        return {owner: columns[owner] for owner in self._bits}  # in the common order, which all parties go by

    def to_nodes(self, computation: Computation, blocks: Blocks) -> torch.Tensor:
        """Sum over k of X_k W_k [nodes, columns], LONG, from LONG blocks."""
        fitting = dict(blocks)
        for bits in sorted(set(self._bits.values()) - {0}):
            owners = [owner for owner, own in self._bits.items() if own == bits]
            cut = computation.truncate(*(blocks[owner] for owner in owners), bits=bits)
            fitting.update(zip(owners, cut, strict=True))
        return computation.to_nodes(fitting)
