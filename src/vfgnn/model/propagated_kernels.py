"""The two kernels of the sealed protocol's model, in the clear, each in two orders.

    smooth  K = S Phi Phi^T S                                          Psi = S Phi
    hops    K = sum_h R^h Phi Phi^T (R^T)^h, h = 0 .. K: Psi Psi^T     Psi = [Phi, R Phi, ..., R^K Phi]

Phi has the columns of all holders. `weights` and `scores` are the order of columns of labels: Psi^T p and Psi W, a few
columns through all hops. `columns` is the other order: Psi itself, once, then no further hop.
"""

from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp

from vfgnn.model.propagation import Floats, NeighbourSums, Smoothing

KernelName = Literal["smooth", "hops"]
# B, the bound of the basis (krylov.py), in first Rayleigh quotients. Too large a bound costs digits; beyond one that is
# too small the polynomials grow.
SPREAD: dict[KernelName, float] = {"smooth": 2.0, "hops": 8.0}


class Kernel(Protocol):
    """K = Psi Psi^T, by its two halves."""

    @property
    def nodes(self) -> int:
        """How many rows it has."""

    def weights(self, p: Floats) -> Floats:
        """Psi^T p [columns of Psi, w]."""

    def scores(self, weights: Floats) -> Floats:
        """Psi W [nodes, w]."""

    def columns(self) -> Floats:
        """Psi [nodes, columns of Psi]."""


class SmoothKernel:
    """For graphs in which neighbours are alike."""

    def __init__(self, features: sp.csr_array, smoothing: Smoothing) -> None:
        self._features, self._smoothing = features, smoothing
        self._transposed = features.T.tocsr()

    @property
    def nodes(self) -> int:
        """How many rows it has."""
        return int(self._features.shape[0])

    def weights(self, p: Floats) -> Floats:
        """Phi^T S p."""
        return np.asarray(self._transposed @ self._smoothing.apply(p))

    def scores(self, weights: Floats) -> Floats:
        """S Phi W."""
        return self._smoothing.apply(self._features @ weights)

    def columns(self) -> Floats:
        """S Phi."""
        return self._smoothing.apply(self._features.toarray())


class HopsKernel:
    """A weight of its own for each hop: for graphs in which neighbours are not alike."""

    def __init__(self, features: sp.csr_array, sums: NeighbourSums, *, hops: int) -> None:
        self._features, self._sums, self._hops = features, sums, hops
        self._transposed = features.T.tocsr()

    @property
    def nodes(self) -> int:
        """How many rows it has."""
        return int(self._features.shape[0])

    def weights(self, p: Floats) -> Floats:
        """Phi^T (R^T)^h p for each hop, one below the other."""
        blocks = [self._transposed @ p]
        for _ in range(self._hops):
            p = self._sums.transposed(p)
            blocks.append(self._transposed @ p)
        return np.concatenate(blocks)

    def scores(self, weights: Floats) -> Floats:
        """Phi W_0 + R (Phi W_1 + R (Phi W_2 + ...)): as many hops as one way."""
        *rest, last = np.split(weights, self._hops + 1)
        z = self._features @ last
        for block in reversed(rest):
            z = self._features @ block + self._sums.apply(z)
        return np.asarray(z)

    def columns(self) -> Floats:
        """Phi, R Phi, ..., R^K Phi side by side."""
        blocks = [self._features.toarray()]
        for _ in range(self._hops):
            blocks.append(self._sums.apply(blocks[-1]))
        return np.concatenate(blocks, axis=1)


def make_kernel(
    features: sp.csr_array, adjacency: sp.csr_array, *, name: KernelName, hops: int, teleport: float, power: float = 0.5
) -> Kernel:
    """The kernel of that name; `teleport` is for the smooth one alone, `power` for the other."""
    if name == "smooth":
        return SmoothKernel(features, Smoothing(adjacency, hops=hops, teleport=teleport))
    return HopsKernel(features, NeighbourSums(adjacency, power=power), hops=hops)
