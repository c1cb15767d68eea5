"""Products of two shared matrices, and of shared values element by element (Beaver 1991), any number of holders.

  1. dealer: shares of uniform A, B and of C = A B
  2. all holders open E = X - A and F = Y - B
  3. each holder: [Z] = [C] + E [B] + [A] F, and one of them adds E F
  Z = A B + (X - A) B + A (Y - B) + (X - A) (Y - B) = X Y, exactly in the ring.
Each function is one round, for any number of products. Words opened: those of X and of Y; the correction is as large as
Z. Fraction bits add up: truncate the result. Masks are fresh each time, also when a matrix has been multiplied before.
A matrix times its own transpose opens it once, and the correction is A A^T.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from vfgnn.mpc.shared import Arithmetic, DealtShares, Operation, Payload, Shape, masked, matmul

Factors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class MatrixProduct(Operation):
    """[rows, inner] times [inner, columns]: masks A and B, and C = A B."""

    name: ClassVar[str] = "matrix product"
    rows: int
    inner: int
    columns: int

    @property
    def opened(self) -> tuple[Payload, ...]:
        """E and F."""
        return Payload((self.rows, self.inner)), Payload((self.inner, self.columns))

    @property
    def correction(self) -> tuple[Payload, ...]:
        """As large as the product."""
        return (Payload((self.rows, self.columns)),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A B."""
        return [matmul(*masks)]


@dataclass(frozen=True)
class Product(Operation):
    """Element by element: masks A and B, and C = A * B."""

    name: ClassVar[str] = "product"
    shape: Shape

    @property
    def opened(self) -> tuple[Payload, ...]:
        """E and F."""
        return Payload(self.shape), Payload(self.shape)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """As large as the product."""
        return (Payload(self.shape),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A * B."""
        a, b = masks
        return [a * b]


@dataclass(frozen=True)
class GramProduct(Operation):
    """[rows, inner] times its own transpose: a mask A, and A A^T."""

    name: ClassVar[str] = "Gram product"
    rows: int
    inner: int

    @property
    def opened(self) -> tuple[Payload, ...]:
        """E."""
        return (Payload((self.rows, self.inner)),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """As large as the product."""
        return (Payload((self.rows, self.rows)),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A A^T."""
        return [_with_transpose(masks[0], masks[0])]


def matrix_products(arithmetic: Arithmetic, *factors: Factors) -> list[torch.Tensor]:
    """Shares of X Y [m, n] for each pair of shares of X [m, k] and Y [k, n].

    Reveals: nothing; E and F are uniform to all holders.
    """
    take = arithmetic.material.take
    taken = [take(MatrixProduct(x.shape[0], x.shape[1], y.shape[1])) for x, y in factors]
    results = []
    for dealt, (e, f) in zip(taken, _open_masked(arithmetic, factors, taken), strict=True):
        (a, b), (c,) = dealt.masks, dealt.parts
        b = arithmetic.plus_public(b, f)  # E ([B] + F) is one product instead of two
        results.append(matmul(e, b).add_(matmul(a, f)).add_(c))
    return results


def products(arithmetic: Arithmetic, *factors: Factors) -> list[torch.Tensor]:
    """Shares of X * Y, element by element, for each pair of shares of X and Y of one shape.

    Reveals: nothing; E and F are uniform to all holders.
    """
    taken = [arithmetic.material.take(Product(tuple(x.shape))) for x, _ in factors]
    results = []
    for dealt, (e, f) in zip(taken, _open_masked(arithmetic, factors, taken), strict=True):
        (a, b), (c,) = dealt.masks, dealt.parts
        b = arithmetic.plus_public(b, f)
        results.append((e * b).add_(a * f).add_(c))
    return results


def gram(arithmetic: Arithmetic, x: torch.Tensor) -> torch.Tensor:
    """A share of X X^T [m, m] from a share of X [m, k]; one round, m k words opened.

    Reveals: nothing; E is uniform to all holders.
    """
    dealt = arithmetic.material.take(GramProduct(x.shape[0], x.shape[1]))
    (a,), (c,) = dealt.masks, dealt.parts
    (e,) = arithmetic.opening.open(masked(x, a))
    one_side = _with_transpose(e, a)  # X X^T = A A^T + E A^T + (E A^T)^T + E E^T
    result = one_side + one_side.t() + c
    return result.add_(_with_transpose(e, e)) if arithmetic.leads else result


def _with_transpose(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(a, b.t().contiguous())


def _open_masked(arithmetic: Arithmetic, factors: tuple[Factors, ...], taken: list[DealtShares]) -> list[Factors]:
    """E and F of every product.

    Reveals: nothing; each is the secret minus a mask that is used here only.
    """
    shares = [
        masked(share, mask)
        for pair, dealt in zip(factors, taken, strict=True)
        for share, mask in zip(pair, dealt.masks, strict=True)
    ]
    opened = arithmetic.opening.open(*shares)
    return list(zip(opened[::2], opened[1::2], strict=True))
