"""What the label holder makes of the inner products it learns: the steps of the basis, and a solution for each ridge.

G_rs = <p_r, p_s> and H_rs = <p_r, K p_s> over the training rows; H follows from the inner products because K p_s is a
known combination of p_(s-1), p_s and p_(s+1). The best combination sum_s c_s p_s for a ridge r solves
(H + r rho_0 G) c = <p, p_0> (Galerkin), which conjugate gradients would give after as many steps.
Runs at the label holder, in float64. Nothing leaves: steps and c go on as secret factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vfgnn.errors import Overflow
from vfgnn.sealed.formats import FACTOR, factor_word

SPREAD = 4.0  # B = SPREAD rho_0: a bound of the spectrum; a wrong one costs digits, not the result
SMALLEST, LARGEST = 2.0**-9, 2.0**13  # of rho_0: outside, the words of the ring have too few digits, or too few bits


@dataclass(frozen=True, repr=False)
class Steps:
    """The two factors of the recurrence, as they were rounded."""

    first: int
    later: int

    @staticmethod
    def of(products: torch.Tensor) -> "Steps":
        """From the inner products of p_0 and q_0 [2, 2]."""
        quotient = _quotient(products)
        return Steps(factor_word(2 / (SPREAD * quotient)), factor_word(4 / (SPREAD * quotient)))

    @property
    def values(self) -> tuple[float, float]:
        """As numbers."""
        return self.first * 2.0**-FACTOR, self.later * 2.0**-FACTOR


def _quotient(products: torch.Tensor) -> float:
    """Rho_0: how much of its labels a training row hears from the others, on average."""
    norm, image = float(products[0, 0]), float(products[0, 1])
    quotient = image / norm if norm > 0 else 0.0
    if not SMALLEST <= quotient <= LARGEST:
        raise Overflow(
            "the first Rayleigh quotient is outside of what the ring can hold",
            expected=f"{SMALLEST:g} to {LARGEST:g}",
            hint="scale the features: columns of deviation 1, or 0 and 1; and look for labels of one class only",
        )
    return quotient


def solutions(products: torch.Tensor, steps: Steps | None, ridges: Sequence[float]) -> list[list[int]]:
    """For each ridge the words of c_0, ..., c_(t-1), from the inner products of p_0 .. p_(t-1), q_(t-1) [t + 1, t + 1]."""
    known = products.double().numpy()
    t = len(known) - 1
    gram, images = known[:t, :t], _images(known, t, steps)
    quotient = _quotient(torch.tensor([[gram[0, 0], images[0, 0]]]))
    symmetric = (images + images.T) / 2
    return [
        [factor_word(c) for c in np.linalg.solve(symmetric + ridge * quotient * gram, gram[:, 0])] for ridge in ridges
    ]


def _images(known: np.ndarray, t: int, steps: Steps | None) -> np.ndarray:
    """H: by the recurrence K p_s = (p_(s+1) + 2 p_s + p_(s-1)) / later, K p_0 = (p_1 + p_0) / first."""
    images = np.empty((t, t))
    images[:, t - 1] = known[:t, t]
    if t > 1 and steps is not None:
        first, later = steps.values
        images[:, 0] = (known[:t, 1] + known[:t, 0]) / first
        for s in range(1, t - 1):
            images[:, s] = (known[:t, s + 1] + 2 * known[:t, s] + known[:t, s - 1]) / later
    return images
