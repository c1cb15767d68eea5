"""A holder's own edges, as the sealed protocol counts them: both directions, no self-loops, no duplicates, a quota.

Degrees of the union graph go through a one-time table of 2^k entries. A node may have `degree_quota` edges of each
holder, so that no sum leaves the table; what is beyond is dropped, here, before anything is computed.
Runs at each holder, on its own edges. Nothing leaves; the number that it declares is chosen before.
"""

import torch

from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError


def entries_of(edge_index: torch.Tensor, nodes: int, *, quota: int) -> torch.Tensor:
    """Directed entries of a symmetric binary matrix without diagonal [2, entries], sorted."""
    source, target = edge_index
    both = torch.cat([source * nodes + target, target * nodes + source])
    pairs = torch.unique(both[both // nodes != both % nodes])
    source, target = pairs // nodes, pairs % nodes
    degree = torch.bincount(source, minlength=nodes)
    first = degree.cumsum(0) - degree
    beyond = torch.arange(len(pairs)) - first[source] >= quota
    dropped = torch.cat([pairs[beyond], target[beyond] * nodes + source[beyond]])
    kept = pairs[~torch.isin(pairs, dropped)]
    return torch.stack([kept // nodes, kept % nodes])


def proposed_bound(entries: int) -> int:
    """What a holder with so many entries may declare: rounded up to 1/8 of a power of two, so that it tells little."""
    if entries <= 16:
        return 16 if entries else 0
    unit = 1 << (entries.bit_length() - 4)
    return -(-entries // unit) * unit


def refuse_unusable(holding: Holding) -> None:
    """Refuse what the sealed protocol has no place for."""
    if holding.local:
        raise ConfigError(
            "local neighbours cannot be kept in the sealed protocol",
            expected="keep_local_neighbours = false",
            hint="all holders' edges act on all rows, so every row is a common one",
        )
    if holding.edge_weight is not None:
        raise ConfigError(
            "edges with weights cannot be used in the sealed protocol",
            expected="edges without a weight column",
            hint="leave edge_weight out of [data], or use protocol = split",
        )
