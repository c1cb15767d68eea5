"""Ridge regression within a Krylov space, from inner products alone: what the label holder computes, in the clear.

    basis   shifted Chebyshev polynomials of K / B applied to the targets b, one polynomial for all columns:
            p_0 = b, p_1 = 2 x - p_0 with x = K p_0 / B, p_(s+1) = 4 x - 2 p_s - p_(s-1) with x = K p_s / B
    Gram    the inner products of p_0, ..., p_(t-1), K p_(t-1): by the recurrence they hold those of all K p_s as well
    solve   coefficients c of p_0 ... p_(t-1), for any number of ridge strengths from one basis

Two ways to solve, alike for many steps. `kernel` is conjugate gradients on (K + ridge) p = b. `weights` is the p of the
space with the smallest |b - K p|^2 + ridge <p, K p>, which is the objective of the ridge regression.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vfgnn.errors import DataError
from vfgnn.model.propagation import Floats

Minimum = Literal["kernel", "weights"]


@dataclass(frozen=True, repr=False)
class Basis:
    """p_0 ... p_(t-1), the bound that they were made with, and the inner products."""

    vectors: list[Floats]
    bound: float  # B
    gram: Floats  # [t + 1, t + 1], the last row and column those of K p_(t-1)

    @property
    def steps(self) -> int:
        """t, how often K was applied."""
        return len(self.vectors)


def grow_basis(times: Callable[[Floats], Floats], b: Floats, *, steps: int, spread: float) -> Basis:
    """`steps` products with K; B is `spread` times the Rayleigh quotient of b."""
    vectors, bound = [b], 1.0
    for step in range(steps):
        product = times(vectors[step])
        if step == 0:
            bound = spread * rayleigh(b, product)
        if step < steps - 1:
            vectors.append(next_vector(vectors, product / bound))
    return Basis(vectors, bound, gram_of([*vectors, product]))


def rayleigh(b: Floats, product: Floats) -> float:
    """<b, K b> / <b, b>; never negative unless something overflowed or K is no kernel."""
    quotient = float((b * product).sum() / (b * b).sum())
    if not np.isfinite(quotient) or quotient <= 0:
        raise DataError(
            "the features say nothing about the training rows",
            expected="a positive Rayleigh quotient of the labels",
            got=f"{quotient:g}",
            hint="check that training rows have features, and more than one class",
        )
    return quotient


def next_vector(vectors: list[Floats], x: Floats) -> Floats:
    """The Chebyshev recurrence, x = K p_s / B of the last vector."""
    if len(vectors) == 1:
        return 2 * x - vectors[0]
    return 4 * x - 2 * vectors[-1] - vectors[-2]


def gram_of(vectors: list[Floats]) -> Floats:
    """Inner products over all rows and columns."""
    flat = np.stack([vector.reshape(-1) for vector in vectors])
    return np.asarray(flat @ flat.T)


def products_by_vectors(steps: int, bound: float) -> Floats:
    """E [t + 1, t]: K p_s as a sum of the vectors and K p_(t-1)."""
    found = np.zeros((steps + 1, steps))
    for s in range(steps - 1):
        found[s + 1, s] = found[abs(s - 1), s] = bound / 4
        found[s, s] = bound / 2
    if steps > 1:
        found[:2, 0] = bound / 2
    found[steps, steps - 1] = 1.0
    return found


def coefficients(gram: Floats, bound: float, ridge: float, *, minimum: Minimum) -> Floats:
    """One for each vector, from the inner products; `ridge` as it is added to K."""
    steps = len(gram) - 1
    products = products_by_vectors(steps, bound)
    vectors = gram[:steps, :steps]  # <p_s, p_t>
    kernel = gram[:steps] @ products  # <p_s, K p_t>
    if minimum == "kernel":
        return _solve(kernel + ridge * vectors, vectors[:, 0])
    return _solve(products.T @ gram @ products + ridge * kernel, kernel[0])


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Once the space has its full rank, further vectors depend on the others: any solution is as good."""
    return np.asarray(np.linalg.lstsq((matrix + matrix.T) / 2, right, rcond=1e-14)[0])
