"""What is known of a pair of nodes to somebody with a graph, features and labels: the columns of a learned edge attack.

The graph is that of the edges that the attacker trains on; a pair that it is asked about must not be among them, or the
attack would learn to read its own edges.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from vfgnn.model.propagation import Floats, Integers, Smoothing, union

FAR, NEAR = 10, 2  # hops over which features are smoothed
TELEPORT = 0.1


@dataclass(frozen=True, repr=False)
class Known:
    """The attacker's own data, without its edges."""

    x: Floats  # [nodes, p]
    y: Integers  # [nodes], -1: not known
    classes: int

    @property
    def hot(self) -> Floats:
        """One-hot labels [nodes, classes]; zeros where none is known."""
        return np.eye(self.classes)[np.maximum(self.y, 0)] * (self.y >= 0)[:, None]


def own_columns(known: Known, edges: Integers, pairs: Tensor) -> Floats:
    """Of each pair [pairs, columns]: labels, similarity, short walks between both, degrees."""
    x, hot, (u, v) = known.x, known.hot, pairs.numpy()
    graph = union([edges], len(x))
    degree, near = graph.sum(axis=1), Smoothing(graph, hops=NEAR, teleport=TELEPORT)
    far, around = Smoothing(graph, hops=FAR, teleport=TELEPORT), Smoothing(graph, hops=NEAR, teleport=0.0).apply(hot)
    scaled = _standardised(x)
    rows = [_unit(one) for one in (x, scaled, far.apply(x), near.apply(x), near.apply(scaled))]
    length = np.linalg.norm(x, axis=1)
    return np.stack(
        [
            *_labels(known, u, v),
            *(_products(one, one, u, v) for one in rows),
            *_walks(graph, u, v),
            *_ordered(degree, u, v),
            *_ordered(length, u, v),
            _products(around, hot, u, v) + _products(hot, around, u, v),
            _products(around, around, u, v),
        ],
        axis=1,
    )


def opened_columns(known: Known, predictions: Tensor, pairs: Tensor) -> Floats:
    """Of each pair: how alike what was opened of both is, and how it stands to the labels that are known.

    `predictions` [nodes, columns]: scores, or one-hot classes, of one training or of several side by side.
    """
    opened, (u, v) = predictions.double().nan_to_num().numpy(), pairs.numpy()
    apart = opened[u] - opened[v]
    centred = _unit(opened - opened.mean(axis=0))
    columns = [
        _products(_unit(opened), _unit(opened), u, v),
        _products(centred, centred, u, v),
        np.abs(apart).max(axis=1),
        np.linalg.norm(apart, axis=1),
        *_ordered(opened.max(axis=1), u, v),
    ]
    if opened.shape[1] == known.classes:
        hot = known.hot
        columns += [
            _products(opened, hot, u, v) + _products(hot, opened, u, v),
            *_ordered((opened * hot).sum(axis=1), u, v),
        ]
    return np.stack(columns, axis=1)


def _labels(known: Known, u: Integers, v: Integers) -> list[Floats]:
    """Whether both are equal, and which two they are."""
    low, high = np.minimum(known.y[u], known.y[v]), np.maximum(known.y[u], known.y[v])
    return [((low == high) & (low >= 0)).astype(np.float64), (low * known.classes + high).astype(np.float64)]


def _walks(graph: sp.csr_array, u: Integers, v: Integers) -> list[Floats]:
    """Of two, three and four steps, each weighted by the degrees on its way (Liben-Nowell & Kleinberg 2003)."""
    scale = sp.diags_array(1 / np.sqrt(np.maximum(graph.sum(axis=1), 1)))
    one = (scale @ graph @ scale).tocsr()
    two = (one @ one).tocsr()
    ends = [(one, one), (two, one), (one, two), (two, two)]
    second, third, back, fourth = (np.asarray(a[u].multiply(b[v]).sum(axis=1)).reshape(-1) for a, b in ends)
    return [second, third + back, fourth]


def _products(first: Floats, second: Floats, u: Integers, v: Integers) -> Floats:
    return np.asarray((first[u] * second[v]).sum(axis=1))


def _ordered(values: Floats, u: Integers, v: Integers) -> list[Floats]:
    """The smaller one and the larger one: a pair has no direction."""
    return [np.minimum(values[u], values[v]), np.maximum(values[u], values[v])]


def _unit(rows: Floats) -> Floats:
    return F.normalize(torch.from_numpy(rows), dim=1).numpy()


def _standardised(x: Floats) -> Floats:
    deviation = x.std(axis=0)
    return np.asarray((x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
