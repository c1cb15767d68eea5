"""What the sealed protocol's algorithm is written in: the steps that holders can take on shares.

The algorithm (training.py, basis.py, images.py, kernel.py) is written once, against this interface. Three things
stand behind it: the holders' own computation (joint_computation.py), the rehearsal that finds out from public sizes
what is dealt and sent (rehearsal.py), and, in tests, plain integers. So what is declared is what is done.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch

from vfgnn.messages import Kind
from vfgnn.mpc.blinding import Blinded
from vfgnn.mpc.scaling import Scaled

Blocks = Mapping[str, torch.Tensor]
"""A matrix by columns of features: each feature holder's rows of it."""


class Computation(Protocol):
    """All arguments and results are shares [rows, columns] unless said otherwise; nothing is revealed but by `tell`."""

    def from_leader(self, words: torch.Tensor | None, shape: tuple[int, ...]) -> torch.Tensor:
        """A share of what only the label holder has; the others give None."""

    def plus_public(self, share: torch.Tensor, words: torch.Tensor | int) -> torch.Tensor:
        """A share of the secret plus something that all know."""

    def hop(self, share: torch.Tensor, *, self_loops: bool) -> torch.Tensor:
        """(A + I) u, or A u; A is the sum of all holders' adjacency matrices."""

    def to_columns(self, by_owner: Blocks) -> dict[str, torch.Tensor]:
        """X_k^T u_k of each feature holder k; every u_k [nodes, columns] is the same secret, in the words k wants."""

    def to_nodes(self, blocks: Blocks) -> torch.Tensor:
        """The sum over k of X_k W_k."""

    def truncate(self, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
        """V >> bits, in one round."""

    def multiply(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Element by element."""

    def blind(self, *shares: torch.Tensor) -> list[Blinded]:
        """Make factors of shares, [rows, 1] or [1, 1], in one round."""

    def multiply_fixed(self, matrix: Blinded, share: torch.Tensor) -> torch.Tensor:
        """A blinded matrix times a share."""

    def scale(self, *work: tuple[torch.Tensor, Sequence[Blinded]], bits: int) -> list[Scaled]:
        """V >> bits and s (V >> bits) for each V and each of its factors s, in one round."""

    def look_up(self, share: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """A public table's entry for each value [rows]."""

    def gram(self, share: torch.Tensor) -> torch.Tensor:
        """X X^T."""

    def classes(self, scores: torch.Tensor, *, cut: int) -> torch.Tensor:
        """Shares of the bits that say which score of a row is the largest, without `cut` bits; of equals the first."""

    def tell(self, share: torch.Tensor, kind: Kind) -> torch.Tensor | None:
        """Reveals: the secret to the label holder, which alone gets a result."""

    def tell_classes(self, bits: torch.Tensor, kind: Kind) -> torch.Tensor | None:
        """Reveals: the class of each row to the label holder, which alone gets a result [rows]."""
