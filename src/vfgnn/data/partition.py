"""The partition lab: one graph split over holders as if they had never shared it.

For experiments and simulations; in a real federation each holder brings its own data. Columns and edges are each
dealt out once, in a seeded random order. Nothing is lost. Nothing is given twice, but for edges that are dealt by
direction: whoever gets one direction of an edge knows the edge.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import numpy as np
import torch

from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError

EdgeSplit = Literal["undirected", "directed"]


def holder_names(count: int) -> list[str]:
    """A, B, ... as in the paper; A has the labels."""
    if count < 1:
        raise ConfigError("too few holders", expected="at least one", got=str(count))
    return [chr(ord("A") + i) if i < 26 else f"H{i + 1}" for i in range(count)]


def check_proportions(proportions: Sequence[float] | None, holders: int) -> list[float]:
    """One share per holder, adding up to 1; equal shares if None."""
    holder_names(holders)
    if proportions is None:
        return [1 / holders] * holders
    shares = [float(share) for share in proportions]
    if len(shares) != holders:
        raise ConfigError("wrong number of proportions", expected=f"one for each of {holders} holders", got=str(shares))
    if not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise ConfigError("proportions do not add up", expected="shares from 0 to 1 whose sum is 1", got=str(shares))
    return shares


def deal(count: int, proportions: Sequence[float], rng: np.random.Generator) -> list[np.ndarray]:
    """The numbers 0..count-1 dealt out in random order, each to exactly one, sizes as proportioned."""
    cuts = [round(count * total) for total in accumulate(proportions)]
    return [np.sort(part) for part in np.split(rng.permutation(count), cuts[:-1])]


def partition(
    x: torch.Tensor,
    edge_index: torch.Tensor,
    *,
    holders: int,
    seed: int,
    proportions: Sequence[float] | None = None,
    edge_proportions: Sequence[float] | None = None,
    edge_split: EdgeSplit = "undirected",
) -> list[Holding]:
    """Split columns by `proportions` and edges by `edge_proportions` (the same unless given).

    `undirected`: both directions of an edge, and its repeats, stay together at one holder. `directed`: each entry of
    edge_index is dealt by itself, and a holder has all entries of the edges that it was dealt one entry of. So each of
    two holders knows about three quarters of all edges, and half of them are known to both.
    """
    if edge_split not in ("undirected", "directed"):
        raise ConfigError("unknown edge_split", expected="undirected or directed", got=str(edge_split))
    column_shares = check_proportions(proportions, holders)
    edge_shares = column_shares if edge_proportions is None else check_proportions(edge_proportions, holders)
    rng = np.random.default_rng(seed)
    columns = deal(x.shape[1], column_shares, rng)
    known = known_edges(edge_index.numpy(), edge_shares, edge_split, rng)
    return [
        Holding(x=x[:, torch.from_numpy(mine)], edge_index=edge_index[:, torch.from_numpy(entries)])
        for mine, entries in zip(columns, known, strict=True)
    ]


def known_edges(
    edge_index: np.ndarray, proportions: Sequence[float], edge_split: EdgeSplit, rng: np.random.Generator
) -> np.ndarray:
    """Which entries of edge_index each holder has [holders, entries]."""
    entries = edge_index.shape[1]
    ends = np.sort(edge_index, axis=0)
    edge_of_entry = np.unique(ends, axis=1, return_inverse=True)[1].reshape(-1)
    edges = int(edge_of_entry.max()) + 1 if entries else 0
    known = np.zeros((len(proportions), edges), dtype=bool)
    for i, mine in enumerate(deal(entries if edge_split == "directed" else edges, proportions, rng)):
        known[i, edge_of_entry[mine] if edge_split == "directed" else mine] = True
    return known[:, edge_of_entry]
