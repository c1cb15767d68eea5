"""What James-Stein does to one noised row (Q6): a unit row x of d values, noise s on each, no training.

    noised  y = x + s n          James-Stein  f y, f = 1 - (d - 2) s^2 / |y|^2

f y is nearer to x, which is what the paper's theorem says. But a model does not measure distances: it reads directions,
and one common factor is undone by the weights that follow. What is left of f is its own noise: it differs from row to
row with a deviation of about sqrt(2 / d), and where it is below zero the row is turned round. Only |y| goes into f, so
everything here follows from the part of y along x and from the squared length of the rest.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from vfgnn.privacy.calibration import classical_multiplier

DRAWS = 400_000


@dataclass(frozen=True)
class Shrinkage:
    """Of many noised rows."""

    epsilon: float
    dim: int
    std: float  # s
    error_gaussian: float  # E |y - x|^2
    error_james_stein: float  # E |f y - x|^2
    turned: float  # the share of rows with f < 0
    kept: float  # signal to noise of a linear read-out of f y, relative to that of y


@cache
def shrinkage(epsilon: float, dim: int, delta: float) -> Shrinkage:
    """By drawing; the deviation of each figure is below a hundredth of it."""
    rng, std = np.random.default_rng(0), classical_multiplier(epsilon, delta)
    along = 1 + std * rng.standard_normal(DRAWS)
    across = std**2 * rng.chisquare(dim - 1, DRAWS)  # the squared length of the rest
    factor = 1 - (dim - 2) * std**2 / (along**2 + across)
    noise = float(np.mean(factor**2 * across)) / (dim - 1)  # on each value that x has nothing in
    return Shrinkage(
        epsilon=epsilon,
        dim=dim,
        std=std,
        error_gaussian=dim * std**2,
        error_james_stein=float(np.mean((factor * along - 1) ** 2 + factor**2 * across)),
        turned=float(np.mean(factor < 0)),
        kept=float(np.mean(factor * along)) ** 2 / noise * std**2,
    )
