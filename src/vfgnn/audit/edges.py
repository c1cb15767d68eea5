"""Edges as a ranking: pairs that are edges, as many that are none, and the similarity of two rows as the score."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from vfgnn.audit.views import NotInView, Truth
from vfgnn.data.holdings import Holding

FEWEST = 5  # edges: with fewer the interval of an AUC says nothing


def drawn_pairs(holding: Holding, rng: Generator, *, others: int = 1) -> tuple[Tensor, Tensor]:
    """All edges of a holder and as many random pairs that are none [2, pairs], and which of them are edges [pairs].

    `others`: how many pairs that are none for each edge.
    """
    nodes = holding.nodes
    edges = torch.unique(holding.edge_index.sort(dim=0).values, dim=1)
    edges = edges[:, (edges[0] < edges[1]) & (edges[1] < nodes)]
    pairs = torch.randint(nodes, (2, 3 * others * edges.shape[1]), generator=rng).sort(dim=0).values
    numbered = [one[0] * nodes + one[1] for one in (pairs, edges)]
    none = pairs[:, (pairs[0] < pairs[1]) & ~torch.isin(*numbered)][:, : others * edges.shape[1]]
    if min(edges.shape[1], none.shape[1]) < FEWEST:
        raise NotInView(f"{FEWEST} edges, and as many pairs of nodes that are none")
    truth = torch.arange(edges.shape[1] + none.shape[1]) < edges.shape[1]
    return torch.cat([edges, none], dim=1), truth


def cosines(rows: Tensor, pairs: Tensor) -> Tensor:
    """Of the two rows of each pair (He et al. 2021); a row that is 0 is similar to nothing."""
    unit = F.normalize(rows.double(), dim=1)
    return (unit[pairs[0]] * unit[pairs[1]]).sum(dim=1)


def same_label(y: Tensor, pairs: Tensor) -> Tensor:
    """1 where both are known and equal."""
    first, second = y[pairs]
    same: Tensor = ((first == second) & (first >= 0)).double()
    return same


def explained_alone(truth: Truth, about: str, pairs: Tensor) -> dict[str, Tensor]:
    """Scores that need no message: edges join nodes of one class with similar features.

    Most of what gradients tell of edges is what labels alone tell (link inference in vertical graphs, ACSAC 2024). So
    an attack counts by what it finds beyond the true labels and the true features, which the attacker need not have.
    """
    scores = {}
    if truth.labels is not None:
        scores["labels alone"] = same_label(truth.labels.y, pairs)
    if truth.holding(about).x.shape[1]:
        scores["features alone"] = cosines(truth.holding(about).x, pairs)
    return scores or {"a guess": torch.zeros(pairs.shape[1])}
