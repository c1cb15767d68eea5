"""Division of shared words by a power of two: what brings a product back to its factors' fraction bits.

Shifting each share by itself is wrong for three or more holders: their shares wrap around the ring more than once, and
a quarter of the results or more is off by 2^(64 - f). With the dealer's r, and >> of the unsigned word:
  1. dealer: shares of a uniform r, of r >> f and of msb(r)
  2. all holders open c = v + 2^62 + r
  3. [v >> f] = (c >> f) - [r >> f] + [msb r] (1 - msb c) 2^(64 - f) - 2^(62 - f); one holder adds the public terms
While |v| < 2^62, v + 2^62 has no highest bit, so the sum wrapped if and only if r has it and c has not.
The result is v / 2^f rounded up or down at random, and right on average. One round for any number of values; as many
words are opened as v has, and the correction is twice as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from vfgnn.mpc.shared import Arithmetic, DealtShares, Operation, Payload, Shape, shift_right

OFFSET_BITS = 62


@dataclass(frozen=True)
class Truncation(Operation):
    """Division by 2^bits: a mask r, and r >> bits and the highest bit of r, both of the unsigned word."""

    name: ClassVar[str] = "truncation"
    shape: Shape
    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= OFFSET_BITS:
            raise ValueError(f"words are truncated by 1 to {OFFSET_BITS} bits, not {self.bits}")

    @property
    def opened(self) -> tuple[Payload, ...]:
        """C."""
        return (Payload(self.shape),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """Twice the size of v."""
        return (Payload((2, *self.shape)),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Both of them: r >> bits and the highest bit of r."""
        (r,) = masks
        return [torch.stack([shift_right(r, self.bits), shift_right(r, 63)])]


def truncate(arithmetic: Arithmetic, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
    """Shares of v / 2^bits, less than one unit off, for each share of v with |v| < 2^62.

    Reveals: nothing; c is uniform to all holders.
    """
    taken = [arithmetic.material.take(Truncation(tuple(share.shape), bits)) for share in shares]
    masked = [
        arithmetic.plus_public(share + dealt.masks[0], 2**OFFSET_BITS)
        for share, dealt in zip(shares, taken, strict=True)
    ]
    opened = arithmetic.opening.open(*masked)
    return [_shifted(arithmetic, c, dealt, bits) for c, dealt in zip(opened, taken, strict=True)]


def _shifted(arithmetic: Arithmetic, c: torch.Tensor, dealt: DealtShares, bits: int) -> torch.Tensor:
    """Step 3."""
    shifted, highest = dealt.parts[0]
    wrapped = (highest << (64 - bits)) * (c >= 0)  # c >= 0: its highest bit is 0
    public = shift_right(c, bits) - 2 ** (OFFSET_BITS - bits)
    return arithmetic.plus_public(wrapped.sub_(shifted), public)
