"""Uniform permutations of a secret stream, and permutations that are split in two.

A permutation of n rows is an int32 tensor. As a PLACEMENT, row k goes to place p[k]; as a GATHER, row k comes from
place p[k]. A placement P is split as P = Sigma P': P' is drawn uniformly and independently of P, and Sigma is what is
left to do. Either factor alone is uniform, so whoever has only one of them learns nothing of P.
Runs at the holders and the dealer. Nothing leaves.
"""

import torch

from vfgnn.errors import ProtocolError
from vfgnn.randomness import Stream

INDEX = torch.int32
"""Of rows and slots: halves the memory that a random access has to go through."""

MOST_ROWS = 2**31 - 1


def draw_permutation(stream: Stream, rows: int) -> torch.Tensor:
    """Uniform over all rows! permutations: the order of words that are uniform and all different.

    All words are drawn again when two are equal, so that no order is favoured. With 10^7 rows that happens once in
    2^64 / (10^14 / 2) = 370,000 draws.
    """
    while True:
        ascending, order = torch.sort(stream.words(rows))
        if not bool((ascending[1:] == ascending[:-1]).any()):
            return order.to(INDEX)


def left_factor(placement: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """Sigma, as a gather, with placement P = Sigma P', where P' is the placement `drawn`.

    P' puts row k into place drawn[k]; Sigma takes it from there to placement[k].
    """
    sigma = torch.empty_like(drawn)
    sigma[placement.long()] = drawn
    return sigma


def inverse(permutation: torch.Tensor) -> torch.Tensor:
    """What undoes it; also the gather that does the same as this placement, and the other way round."""
    return left_factor(permutation, torch.arange(len(permutation), dtype=INDEX))


def checked_table(table: torch.Tensor, places: int, sender: str) -> torch.Tensor:
    """A table that came from `sender`, or a ProtocolError: the kernels read and write wherever it says."""
    seen = torch.zeros(places, dtype=torch.bool)
    if len(table) and int(table.min()) >= 0 and int(table.max()) < places:
        seen[table.long()] = True
    if int(seen.sum()) != len(table):
        raise ProtocolError(
            "a table that names a place twice, or one that is not there",
            expected=f"different places of 0 to {places - 1}",
            where=f"from {sender}",
        )
    return table
