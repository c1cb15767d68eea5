"""Division of shared words by a power of two, and products of the result with shared factors, in one opening.

A factor s is blinded once (`blinding.py`): a vector [n, 1], a scalar [1, 1], or whatever can be stretched over V.
  1. dealer: shares of a uniform r; of r' = r >> g and m = msb(r), unsigned; of u r' and u m for each factor
  2. all holders open c = V + 2^62 + r
  3. with the public p = (c >> g) - 2^(62 - g), and q = (1 - msb c) 2^(64 - g) m - r':
     [V >> g] = p + [q]      [s (V >> g)] = eps [V >> g] + [u] p + [u q]      one holder adds what is public
While |V| < 2^62 the quotient is less than one unit off (`truncation.py` has the argument), and the products are those
of this very quotient, exactly in the ring. Several pairs of V and factors take one round together.
Words, for n values and k factors: n opened. Correction: (1 + k) n for r' and the u r'; as many for m and the u m, which
matter modulo 2^g only: of 4 bytes for g <= 32. For g = 0 nothing is divided, and V may be any word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from vfgnn.mpc.blinding import Blinded
from vfgnn.mpc.shared import Arithmetic, DealtShares, Operation, Payload, Shape, shift_right
from vfgnn.mpc.truncation import OFFSET_BITS


@dataclass(frozen=True)
class Scaling(Operation):
    """One V [shape] divided by 2^bits, and times the factors that were blinded under these labels."""

    name: ClassVar[str] = "scaling"
    shape: Shape
    bits: int
    factors: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= OFFSET_BITS:
            raise ValueError(f"words are scaled down by 0 to {OFFSET_BITS} bits, not {self.bits}")

    @property
    def opened(self) -> tuple[Payload, ...]:
        """C."""
        return (Payload(self.shape),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """All r', then all m."""
        shape = (1 + len(self.factors), *self.shape)
        return (Payload(shape), Payload(shape, self.carried)) if self.bits else (Payload(shape),)

    @property
    def carried(self) -> torch.dtype:
        """The type of m: shifted by 64 - bits, no more than `bits` of its bits remain."""
        return torch.int32 if self.bits <= 32 else torch.int64

    @property
    def uses(self) -> tuple[str, ...]:
        """The factors' masks."""
        return self.factors

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All r', then all m."""
        shifted, highest = shift_right(masks[0], self.bits), shift_right(masks[0], 63)
        parts = [torch.stack([shifted, *(u * shifted for u in kept)])]
        if self.bits:
            parts.append(torch.stack([highest, *(u * highest for u in kept)]).to(self.carried))
        return parts


@dataclass(frozen=True, repr=False)
class Scaled:
    """Shares of V >> g, and of its products with each factor."""

    plain: torch.Tensor
    by: list[torch.Tensor]


def scale(arithmetic: Arithmetic, *values: tuple[torch.Tensor, Sequence[Blinded]], bits: int) -> list[Scaled]:
    """For each share of V and its factors: shares of V >> bits and of the products with it, in one round.

    Reveals: nothing; c is uniform to all holders.
    """
    operations = [Scaling(tuple(v.shape), bits, tuple(s.label for s in factors)) for v, factors in values]
    for (v, factors), operation in zip(values, operations, strict=True):
        if not all(_stretches(s.eps, v) for s in factors):
            raise ValueError(f"a factor that does not fit values of {list(operation.shape)}")
    taken = [arithmetic.material.take(operation) for operation in operations]
    offset = 2**OFFSET_BITS if bits else 0
    shares = [arithmetic.plus_public(v + dealt.masks[0], offset) for (v, _), dealt in zip(values, taken, strict=True)]
    opened = arithmetic.opening.open(*shares)
    return [
        _scaled(arithmetic, c, dealt, factors, bits)
        for c, dealt, (_, factors) in zip(opened, taken, values, strict=True)
    ]


def _stretches(factor: torch.Tensor, v: torch.Tensor) -> bool:
    """Over V, and not V over the factor."""
    sizes = zip(factor.shape, v.shape, strict=True) if factor.dim() == v.dim() else [(0, 1)]
    return all(size in (1, of) for size, of in sizes)


def _scaled(
    arithmetic: Arithmetic, c: torch.Tensor, dealt: DealtShares, factors: Sequence[Blinded], bits: int
) -> Scaled:
    """Step 3."""
    public, q = c, -dealt.parts[0]
    if bits:
        public = shift_right(c, bits) - 2 ** (OFFSET_BITS - bits)
        q = q.add_((dealt.parts[1].long() << (64 - bits)).mul_(c >= 0))  # c >= 0: its highest bit is 0
    plain = arithmetic.plus_public(q[0], public)
    return Scaled(
        plain, [(s.eps * plain).add_(s.mask_share * public).add_(uq) for s, uq in zip(factors, q[1:], strict=True)]
    )


def scale_operations(*values: tuple[Shape, Sequence[str]], bits: int) -> list[Operation]:
    """What `scale` needs of the dealer, in order; of each V the shape and the labels of its factors."""
    return [Scaling(shape, bits, tuple(labels)) for shape, labels in values]
