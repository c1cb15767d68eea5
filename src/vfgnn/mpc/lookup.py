"""A public function of a shared number of a few bits, by a one-time truth table: the inverse root of a degree, say.

  1. dealer: shares of a uniform r, and of the table turned by r: T[c] = table[(c - r) mod 2^k], for each value
  2. all holders open c = d + r, reduced to 16 bits; what is above k bits is uniform, and is not used
  3. each holder takes its share of T[c mod 2^k], so the result is table[d mod 2^k], exactly in the ring
A d outside 0 .. 2^k - 1 wraps, unseen: whoever calls this bounds it. One round, 2 bytes opened for a value; the
correction has 2^k words for a value, and each holder and the dealer hold as many in memory (k = 10 and 20,000 values:
164 MB).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from vfgnn.mpc.shared import Arithmetic, Operation, Payload, Shape

MOST_BITS = 14


@dataclass(frozen=True)
class Lookup(Operation):
    """Values of this shape in a public table of 2^k words."""

    name: ClassVar[str] = "lookup"
    shape: Shape
    table: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.table) not in {2**bits for bits in range(1, MOST_BITS + 1)}:
            raise ValueError(f"a table has 2^1 to 2^{MOST_BITS} entries, not {len(self.table)}")

    @property
    def opened(self) -> tuple[Payload, ...]:
        """C."""
        return (Payload(self.shape, torch.int16),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """A turned table for each value."""
        return (Payload((*self.shape, len(self.table))),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The table twice in a row, from the place where it is turned to."""
        size = len(self.table)
        begins = torch.tensor(self.table * 2).unfold(0, size, 1)
        return [begins[(-masks[0].long()) & (size - 1)]]


def look_up(arithmetic: Arithmetic, share: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """A share of table[d mod 2^k] from one of d; `table`: 2^k words, public.

    Reveals: nothing; c is uniform to all holders.
    """
    dealt = arithmetic.material.take(Lookup(tuple(share.shape), tuple(table.tolist())))
    (c,) = arithmetic.opening.open(share.to(torch.int16) + dealt.masks[0])
    place = c.long() & (len(table) - 1)
    return dealt.parts[0].gather(-1, place.unsqueeze(-1)).squeeze(-1)


def look_up_operations(shape: Shape, table: torch.Tensor) -> list[Operation]:
    """What `look_up` needs of the dealer."""
    return [Lookup(shape, tuple(table.tolist()))]
