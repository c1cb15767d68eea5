"""What the edges of all holders do to values of the nodes, in the clear: the two propagations of the sealed protocol.

    smooth  S: K hops of APPNP, z <- s (A + I) (s z) + teleport z_0, with s = sqrt(1 - teleport) d^-1/2, d = 1 + degree
    hops    R = D^-power A without self-loops, 0 for a node without neighbours. Power 1: their mean; power 1/2: their
            sum over the root of their number, which varies as much for many neighbours as for few

A is the sum of the holders' own matrices: each is 0 or 1, symmetric, without self-loops. So an edge that two holders
have counts twice. Only simulations have the sum; the protocol computes the same on shares.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vfgnn.errors import ConfigError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def neighbours(edge_index: Integers, nodes: int) -> sp.csr_array:
    """One holder's own A: both directions of each edge, once, and no self-loops."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    pairs = np.unique(np.concatenate([source * nodes + target, target * nodes + source]))
    ones = np.ones(len(pairs), dtype=np.float64)
    return sp.csr_array((ones, (pairs // nodes, pairs % nodes)), shape=(nodes, nodes))


def union(edges: Iterable[Integers], nodes: int) -> sp.csr_array:
    """The sum of all holders' A."""
    total = sp.csr_array((nodes, nodes), dtype=np.float64)
    for edge_index in edges:
        total = total + neighbours(edge_index, nodes)
    return total


class Smoothing:
    """S, a symmetric matrix: the weights 1, 1 - teleport, ... of the hops add up with it."""

    def __init__(self, adjacency: sp.csr_array, *, hops: int, teleport: float) -> None:
        if hops < 0 or not 0 <= teleport < 1:
            raise ConfigError("smoothing cannot be done", expected="hops from 0, a teleport from 0 to below 1")
        self.hops, self.teleport = hops, teleport
        self._looped = (adjacency + sp.eye_array(adjacency.shape[0])).tocsr()
        self._scale = np.sqrt((1 - teleport) / self._looped.sum(axis=1))[:, None]

    def apply(self, z: Floats) -> Floats:
        """S z, [nodes, columns]."""
        held = self.teleport * z
        for _ in range(self.hops):
            z = self._scale * (self._looped @ (self._scale * z)) + held
        return z


class NeighbourSums:
    """R, and its transpose."""

    def __init__(self, adjacency: sp.csr_array, *, power: float) -> None:
        degrees = adjacency.sum(axis=1)
        self._adjacency = adjacency.tocsr()
        self._scale = np.power(degrees, -power, out=np.zeros(len(degrees)), where=degrees > 0)[:, None]

    def apply(self, z: Floats) -> Floats:
        """R z, [nodes, columns]."""
        return np.asarray(self._scale * (self._adjacency @ z), dtype=np.float64)

    def transposed(self, z: Floats) -> Floats:
        """R^T z, [nodes, columns]; A is symmetric."""
        return np.asarray(self._adjacency @ (self._scale * z), dtype=np.float64)
