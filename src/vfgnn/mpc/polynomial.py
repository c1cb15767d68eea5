"""tanh and sigmoid of shared values by their Taylor polynomials of degree 3, with the derivatives for the way back.

p(x) = constant + slope x + cubic x^3 = constant + x u with u = slope + cubic x^2, and p'(x) = 3 u - 2 slope.
One product gives u, a second one p, and p' costs nothing:
  1. x^2 (one product, 40 fraction bits)         2. u = slope + cubic x^2 (truncated by 20 bits and the coefficient's)
  3. x u (one product, 40 fraction bits)         4. p = constant + x u (truncated by 20 bits)
Four rounds; 6 words opened and 6 words of corrections for each element. Runs at all holders together. Nothing is
revealed: everything that is opened is masked.
"""

from dataclasses import dataclass

import torch

from vfgnn.mpc.beaver import Product, products
from vfgnn.mpc.shared import Arithmetic, Operation, Shape
from vfgnn.mpc.truncation import Truncation, truncate

FRACTION_BITS = 20
COEFFICIENT_BITS = 16  # of `cubic`: with more, cubic x^2 would leave the ring for smaller x


@dataclass(frozen=True)
class Polynomial:
    """A polynomial of degree 3 without x^2. Holds while |cubic| x^2 < 2^6: |x| < 13.8 for tanh, 55 for sigmoid."""

    constant: float
    slope: float
    cubic: float


@dataclass(frozen=True, repr=False)
class Evaluated:
    """Shares of p(x), and of p'(x) with which the gradient of p(x) is multiplied on the way back."""

    value: torch.Tensor
    derivative: torch.Tensor


TANH = Polynomial(0, 1, -1 / 3)
SIGMOID = Polynomial(1 / 2, 1 / 4, -1 / 48)


def evaluate(arithmetic: Arithmetic, polynomial: Polynomial, x_share: torch.Tensor) -> Evaluated:
    """Shares of p(x) and p'(x) from a share of x, all with 20 fraction bits.

    The error of u is below x^2 2^-17 (the rounded coefficient) + 2^-20 (a truncation), that of p below |x| times this
    + 2^-20, and that of p' three times that of u.
    Reveals: nothing.
    """
    slope = _encode(polynomial.slope, FRACTION_BITS)
    (square,) = products(arithmetic, (x_share, x_share))
    scaled = square * _encode(polynomial.cubic, COEFFICIENT_BITS)
    (u,) = truncate(arithmetic, scaled, bits=FRACTION_BITS + COEFFICIENT_BITS)
    u = arithmetic.plus_public(u, slope)
    (product,) = products(arithmetic, (x_share, u))
    (value,) = truncate(arithmetic, product, bits=FRACTION_BITS)
    value = arithmetic.plus_public(value, _encode(polynomial.constant, FRACTION_BITS))
    return Evaluated(value, arithmetic.plus_public(3 * u, -2 * slope))


def operations(shape: Shape) -> list[Operation]:
    """What `evaluate` needs of the dealer, in order."""
    wide = Truncation(shape, FRACTION_BITS + COEFFICIENT_BITS)
    return [Product(shape), wide, Product(shape), Truncation(shape, FRACTION_BITS)]


def _encode(coefficient: float, bits: int) -> int:
    return round(coefficient * 2.0**bits)
