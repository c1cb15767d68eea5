"""Edges as a ranking: pairs that are edges, as many that are none, and the similarity of two rows as the score."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from vfgnn.data.holdings import Holding


def drawn_pairs(holding: Holding, rng: Generator) -> tuple[Tensor, Tensor]:
    """All edges of a holder and as many random pairs that are none [2, pairs], and which of them are edges [pairs]."""
    nodes = holding.nodes
    edges = torch.unique(holding.edge_index.sort(dim=0).values, dim=1)
    edges = edges[:, (edges[0] < edges[1]) & (edges[1] < nodes)]
    pairs = torch.randint(nodes, (2, 3 * edges.shape[1]), generator=rng).sort(dim=0).values
    numbered = [one[0] * nodes + one[1] for one in (pairs, edges)]
    others = pairs[:, (pairs[0] < pairs[1]) & ~torch.isin(*numbered)][:, : edges.shape[1]]
    truth = torch.arange(edges.shape[1] + others.shape[1]) < edges.shape[1]
    return torch.cat([edges, others], dim=1), truth


def cosines(rows: Tensor, pairs: Tensor) -> Tensor:
    """Of the two rows of each pair (He et al. 2021); a row that is 0 is similar to nothing."""
    unit = F.normalize(rows.double(), dim=1)
    return (unit[pairs[0]] * unit[pairs[1]]).sum(dim=1)
