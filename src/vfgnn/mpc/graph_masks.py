"""What two parties of the private sparse product draw alike from a seed that only these two have.

From the seed of a holder and the dealer: its mask a of each hop, and as an owner P'_1, P'_3, r1 and r3. From seeds that
an owner sends to its partner: P'_2 (the same for all its partners) and r2 (one seed for each). `sparse.py` has the
protocol. Nothing leaves.
"""

import torch

from vfgnn.mpc.permutation import draw_permutation
from vfgnn.randomness import Stream

Size = tuple[int, int]


class GraphMasks:
    """Masks, pads and permutations of one holder; those of an owner have its name."""

    def __init__(self, seed: bytes, *, run: str, holder: str) -> None:
        self._seed, self._run, self._holder = seed, run, holder

    def mask(self, counter: int, size: Size) -> torch.Tensor:
        """The a_j of one hop [n, w]: hides this holder's share from all owners."""
        return self._stream("a", counter).words(*size)

    def permutation(self, number: int, slots: int) -> torch.Tensor:
        """P'_1, P'_2 or P'_3, as a placement: the same in all hops."""
        return draw_permutation(self._stream("permutation", number), slots)

    def pad(self, number: int, partner: str, counter: int, size: Size) -> torch.Tensor:
        """The r1, r2 or r3 of one hop and partner [N, w]."""
        return self._stream("pad", number, partner, counter).words(*size)

    def _stream(self, *names: str | int) -> Stream:
        return Stream(self._seed, self._run, "graph", self._holder, *names)

    def __repr__(self) -> str:
        return f"GraphMasks(holder={self._holder!r})"
