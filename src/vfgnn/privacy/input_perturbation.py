"""Noise on the data itself, once: whatever is computed from it afterwards, for ever, costs nothing more.

Edges: every pair of nodes says of itself whether it is connected, and lies with probability 1 / (1 + e^epsilon)
(randomised response). Labels: a class is replaced by another one, each as likely as the other, with probability
(k - 1) / (e^epsilon + k - 1) in all (k-ary randomised response). Both are pure epsilon-DP: for one edge, for one label.
The draws are exact (exact.py), so no answer is impossible and no ratio is beyond e^epsilon.

Runs at the holder whose edges or labels they are; the holder itself uses what comes out, too. A list of pairs is one
number per undirected pair: pair (i, j) with i < j is number j (j - 1) / 2 + i.
"""

import math

import torch

from vfgnn.errors import DataError
from vfgnn.privacy import exact
from vfgnn.randomness import Stream

BLOCK = 2**20  # gaps drawn at a time


def pair_count(nodes: int) -> int:
    """Undirected pairs of different nodes."""
    return nodes * (nodes - 1) // 2


def pairs_of(edge_index: torch.Tensor) -> torch.Tensor:
    """The pairs that an edge_index connects, in order, each once; directions, repeats and loops are dropped."""
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    different = low < high
    low, high = low[different], high[different]
    pairs: torch.Tensor = torch.unique(high * (high - 1) // 2 + low)
    return pairs


def edges_of(pairs: torch.Tensor) -> torch.Tensor:
    """The edge_index of a list of pairs, both directions."""
    high = ((1 + (1 + 8 * pairs.double()).sqrt()) / 2).floor().to(torch.int64)
    high -= (high * (high - 1) // 2 > pairs).long()  # a float64 square root may be off by one for millions of nodes
    high += ((high + 1) * high // 2 <= pairs).long()
    low = pairs - high * (high - 1) // 2
    return torch.stack([torch.cat([low, high]), torch.cat([high, low])])


def flip_probability(epsilon: float) -> float:
    """That a pair lies: 1 / (1 + e^epsilon)."""
    return 1 / (1 + math.exp(min(epsilon, 700.0)))


def flip_pairs(pairs: torch.Tensor, nodes: int, epsilon: float, stream: Stream, *, most: int) -> torch.Tensor:
    """Randomised response over all pairs of `nodes`, in time and memory of what comes out.

    Each pair is flipped with the same probability, independently: the gaps between flipped pairs are geometric, so only
    the flipped ones are ever drawn; the result is the symmetric difference. Refuses to make more than `most` pairs.
    """
    flip, total = flip_probability(epsilon), pair_count(nodes)
    if total * flip + len(pairs) > most:
        raise DataError(
            "the noised edge list would be too long",
            expected=f"at most noised_edge_bound = {most} pairs",
            got=f"about {total * flip:.3g} false ones among {total} pairs at epsilon {epsilon:g}",
            hint="a larger edge_epsilon, or a larger noised_edge_bound",
        )
    flipped = _flipped_positions(total, epsilon, stream)
    both, times = torch.unique(torch.cat([pairs, flipped]), return_counts=True)
    noised: torch.Tensor = both[times == 1]
    return noised


def _flipped_positions(total: int, epsilon: float, stream: Stream) -> torch.Tensor:
    """Each of 0 .. total - 1 with probability 1 / (1 + e^epsilon), independently, in order."""
    found, at = [torch.empty(0, dtype=torch.int64)], -1
    block = max(16, min(BLOCK, int(1.2 * total * flip_probability(epsilon)) + 16))
    while at < total - 1:
        # A pair stays what it is with probability 1 / (1 + e^-epsilon).
        gaps = exact.geometric(stream, block, rate=lambda mp: mp.log1p(mp.exp(-epsilon)), most=total) + 1
        positions = at + gaps.cumsum(0)
        at = int(positions[-1])
        found.append(positions[positions < total])
    return torch.cat(found)


def edge_meaning(nodes: int, edges: int, epsilon: float) -> tuple[float, float]:
    """What the number means: the share of true edges that a list contains, and how likely a listed edge is real."""
    flip = flip_probability(epsilon)
    true, false = edges * (1 - flip), (pair_count(nodes) - edges) * flip
    return 1 - flip, true / (true + false) if true + false else 0.0


def keep_probability(epsilon: float, classes: int) -> float:
    """That a label stays what it is: e^epsilon / (e^epsilon + k - 1)."""
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))


def flip_labels(y: torch.Tensor, classes: int, epsilon: float, stream: Stream) -> torch.Tensor:
    """k-ary randomised response on each label."""
    keeps = exact.bernoulli(stream, len(y), lambda mp: 1 / (1 + (classes - 1) * mp.exp(-epsilon)))
    step = 1 + stream.below(len(y), bound=classes - 1)
    return torch.where(keeps, y, (y + step) % classes)
