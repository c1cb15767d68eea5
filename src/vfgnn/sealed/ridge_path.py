"""What the label holder makes of the inner products it learns: the steps of the basis, and a solution for each ridge.

The mathematics is that of the model in the clear (model/krylov.py); here are the words. Runs at the label holder, in
float64. Nothing leaves as it is: steps and coefficients go on as secret factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vfgnn.errors import Overflow
from vfgnn.model.krylov import Minimum, coefficients, products_by_vectors
from vfgnn.model.propagated_kernels import KernelName
from vfgnn.model.propagation import Floats
from vfgnn.sealed.formats import COEFFICIENT, FACTOR, factor_word

MARGIN: dict[KernelName, float] = {"smooth": 2.0, "hops": 3.0}
"""B in second quotients <q_0, q_0> / <p_0, q_0>. These follow the spectrum, and the first ones the labels: where
neighbours are not alike, the largest eigenvalue is 40 of the first and 4 of the second. B decides on digits alone."""
SMALLEST, LARGEST = 2.0**-9, 2.0**13  # of the quotient: outside, words have too few digits, or too few bits
MOST = 2.0**8  # of a coefficient
SLACK, UNIT = 0.01, 2.0**-10  # what rounding explains: 3e-5 of inner products has been seen, and 100 and more of a wrap


@dataclass(frozen=True, repr=False)
class Steps:
    """The factors of the recurrence: 2 / B in the first step, twice as much later."""

    quotient: float  # rho_0: what a ridge strength is a multiple of
    first: int

    @staticmethod
    def of(products: torch.Tensor, kernel: KernelName) -> "Steps":
        """From the inner products of p_0 and q_0 [2, 2]."""
        refuse_impossible(products)
        norm, image = float(products[0, 0]), float(products[0, 1])
        quotient = image / norm if norm > 0 else 0.0
        second = float(products[1, 1]) / image if image > 0 else 0.0
        if not SMALLEST <= min(quotient, second) <= max(quotient, second) <= LARGEST:
            raise Overflow(
                "the first Rayleigh quotient is outside of what the ring can hold",
                expected=f"{SMALLEST:g} to {LARGEST:g}",
                where="the label holder",
                hint="scale the features (deviation 1, or 0 and 1); look for labels that are all of one class",
            )
        return Steps(quotient, factor_word(2 / (MARGIN[kernel] * second)))

    @property
    def words(self) -> torch.Tensor:
        """Both factors."""
        return torch.tensor([self.first, 2 * self.first])

    @property
    def bound(self) -> float:
        """B, as the rounded factors have it."""
        return 2 / (self.first * 2.0**-FACTOR)


def path_words(
    products: torch.Tensor, steps: Steps, ridges: Sequence[float], *, minimum: Minimum = "weights"
) -> torch.Tensor:
    """Coefficients [ridges, t], from the inner products of p_0, ..., p_(t-1) and (4 / B) q_(t-1) [t + 1, t + 1]."""
    refuse_impossible(products)
    known = products.double().numpy().copy()
    known[-1] *= steps.bound / 4
    known[:, -1] *= steps.bound / 4
    refuse_asymmetric(known[:-1] @ products_by_vectors(len(known) - 1, steps.bound))
    found = [coefficients(known, steps.bound, ridge * steps.quotient, minimum=minimum) for ridge in ridges]
    path = torch.tensor([list(map(float, row)) for row in found], dtype=torch.float64)
    if not bool(torch.isfinite(path).all()) or float(path.abs().max()) > MOST:
        raise Overflow(
            "the solution of a ridge is outside of what the ring can hold",
            expected=f"coefficients of at most {MOST:g}",
            where="the label holder",
            hint="leave the smallest of [settings.sealed] ridges out, or lower steps",
        )
    return (path * 2.0**COEFFICIENT).round().to(torch.int64)


def refuse_impossible(products: torch.Tensor) -> None:
    """Refuse inner products that no vectors have: by Cauchy and Schwarz. Sums that wrapped around the ring are such."""
    norms = products.diagonal()
    if bool((norms < -UNIT).any()) or bool((products**2 > (1 + SLACK) * torch.outer(norms + UNIT, norms + UNIT)).any()):
        raise _wrapped()


def refuse_asymmetric(kernel: Floats) -> None:
    """Refuse <p_s, K p_t> [t, t] that depends on the order: K is symmetric, and each was computed by itself."""
    norms = np.abs(kernel.diagonal())
    if bool((np.abs(kernel - kernel.T) > SLACK * np.sqrt(np.outer(norms, norms)) + UNIT).any()):
        raise _wrapped()


def _wrapped() -> Overflow:
    return Overflow(
        "the inner products of the basis cannot be right: a sum has left the ring",
        where="the label holder",
        hint="scale the features (deviation 1, or 0 and 1), or lower steps",
    )
