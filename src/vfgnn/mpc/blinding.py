"""A secret that is used in many products opens its mask once: vectors, scalars, and matrices that stay the same.

  1. dealer: shares of a uniform u, which it remembers under the secret's label
  2. all holders open eps = s - u, once, and keep it: one round, as many words as s has, no correction
  3. products with s use eps, [u], and parts that the dealer computes from u (`scaling.py`; matrices: here)
eps stays the same for every later product, so it tells nothing more than the first time; what s is multiplied with gets
a fresh mask each time. eps + [u] is a fresh sharing of s, uniform at all holders but the one that adds eps.

So a holder's private values need no sharing of their own: it gives them as its share, and all others give zeros. What
it sends is its values minus its share of u. The other holders lack that share, and the dealer, which has it, never
sees what holders send to each other.

A fixed matrix G, blinded, times W: the holders open F = W - B, the dealer deals A B with the remembered A (G's u), and
[G W] = [A B] + E [B] + [A] F, where one of them adds E F. One round, as many words as W has; correction: as G W has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from vfgnn.mpc.shared import Arithmetic, Operation, Payload, Shape, masked, matmul

Labelled = tuple[str, torch.Tensor]


@dataclass(frozen=True)
class Blinding(Operation):
    """A mask that the dealer remembers. No two secrets of a run may have the same label."""

    name: ClassVar[str] = "blinding"
    label: str
    shape: Shape

    @property
    def opened(self) -> tuple[Payload, ...]:
        """Eps."""
        return (Payload(self.shape),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """None."""
        return ()

    @property
    def keeps(self) -> str:
        """For later operations."""
        return self.label

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Nothing follows from it yet."""
        return []


@dataclass(frozen=True)
class FixedProduct(Operation):
    """A blinded matrix [rows, inner] times a fresh one [inner, columns]."""

    name: ClassVar[str] = "fixed matrix product"
    label: str
    rows: int
    inner: int
    columns: int

    @property
    def opened(self) -> tuple[Payload, ...]:
        """F."""
        return (Payload((self.inner, self.columns)),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """As large as the product."""
        return (Payload((self.rows, self.columns)),)

    @property
    def uses(self) -> tuple[str, ...]:
        """The matrix's mask A."""
        return (self.label,)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A B."""
        return [matmul(kept[0], masks[0])]


@dataclass(frozen=True, repr=False)
class Blinded:
    """A secret s in one holder's hands: eps = s - u, which all know, and its share of u."""

    label: str
    eps: torch.Tensor
    mask_share: torch.Tensor

    def share(self, arithmetic: Arithmetic) -> torch.Tensor:
        """A share of s."""
        return arithmetic.plus_public(self.mask_share, self.eps)


def blind(arithmetic: Arithmetic, *secrets: Labelled) -> list[Blinded]:
    """Each secret, given as its label and this holder's share, made ready for many products.

    Reveals: nothing; eps is uniform to all holders.
    """
    take = arithmetic.material.take
    masks = [take(Blinding(label, tuple(share.shape))).masks[0] for label, share in secrets]
    opened = arithmetic.opening.open(*(masked(share, u) for (_, share), u in zip(secrets, masks, strict=True)))
    return [Blinded(label, eps, u) for (label, _), eps, u in zip(secrets, opened, masks, strict=True)]


def blind_operations(*secrets: tuple[str, Shape]) -> list[Operation]:
    """What `blind` needs of the dealer, in order."""
    return [Blinding(label, shape) for label, shape in secrets]


def fixed_products(arithmetic: Arithmetic, *factors: tuple[Blinded, torch.Tensor]) -> list[torch.Tensor]:
    """Shares of G W [m, w] for each blinded G [m, k] and share of W [k, w], all in one round.

    Reveals: nothing; F is uniform to all holders.
    """
    take = arithmetic.material.take
    taken = [take(FixedProduct(g.label, g.eps.shape[0], g.eps.shape[1], w.shape[1])) for g, w in factors]
    shares = [masked(w, dealt.masks[0]) for (_, w), dealt in zip(factors, taken, strict=True)]
    results = []
    for (g, _), dealt, f in zip(factors, taken, arithmetic.opening.open(*shares), strict=True):
        b = arithmetic.plus_public(dealt.masks[0], f)
        results.append(matmul(g.eps, b).add_(matmul(g.mask_share, f)).add_(dealt.parts[0]))
    return results


def fixed_operations(*factors: tuple[str, int, int, int]) -> list[Operation]:
    """What `fixed_products` needs of the dealer, in order; of each product the label, rows, inner and columns."""
    return [FixedProduct(*factor) for factor in factors]
