"""Rows of features from whatever goes with them: a ridge regression from some known rows, held against the others.

What is seen of a node (its published row, h0, an opened class) is regressed on the features of the known nodes; the
strength is chosen by leaving out one known row after the other (Allen 1974). How frequent a column is says nothing
here, because an entry above its column's median is held against one of the same column.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from vfgnn.audit.statistics import Comparison, compare_rankings, compare_shares
from vfgnn.audit.views import NotInView

KNOWN = 0.1  # of the rows: the side knowledge of these attacks
NEEDS = f"{KNOWN:.0%} of the rows"
STRENGTHS = torch.logspace(-14, 4, 37, dtype=torch.float64)  # of the ridge, relative to the largest variance
ENTRIES = 4_000  # of each kind, at most: bounds the time of the bootstrap
CLOSE = 1e-3  # of the length of a row


@dataclass(frozen=True, repr=False)
class PartlyKnown:
    """Rows [nodes, p] of which some are known, and the entries of the others that are asked about."""

    values: Tensor
    known: Tensor  # [nodes], whether
    rows: Tensor  # [entries], among the others; the first half are above their column's median, the second half not
    columns: Tensor  # [entries]

    @staticmethod
    def of(values: Tensor, rng: Generator) -> "PartlyKnown":
        """With KNOWN of them known."""
        if not values.shape[1] or len(values) < 4 / KNOWN:
            raise NotInView("columns, and enough rows for some to be known")
        values = values.double()
        known = torch.rand(len(values), generator=rng).argsort() < KNOWN * len(values)
        above = values[~known] > values[known].median(dim=0).values
        places = above.nonzero()
        places = places[torch.randperm(len(places), generator=rng)[:ENTRIES]]
        other = torch.randint(len(above), (len(places),), generator=rng)  # another row, of the same column
        fits = ~above[other, places[:, 1]]
        if not fits.any():
            raise NotInView("entries on both sides of their column's median")
        return PartlyKnown(values, known, torch.cat([places[fits, 0], other[fits]]), places[fits, 1].repeat(2))

    @property
    def usual(self) -> Tensor:
        """Of each column, by the known rows [1, p]."""
        return self.values[self.known].mean(dim=0, keepdim=True)

    def guessed_from(self, seen: Tensor) -> Tensor:
        """The other rows [others, p], from what is seen of all nodes [nodes, k]."""
        seen = seen.nan_to_num().double()
        centre = seen[self.known].mean(dim=0)
        directions, lengths, back = torch.linalg.svd(seen[self.known] - centre, full_matrices=False)
        if not len(lengths) or float(lengths[0]) == 0:
            return self.usual.expand(int((~self.known).sum()), -1)
        targets = self.values[self.known] - self.usual
        rotated = directions.t() @ targets
        shrunk = lengths**2 / (lengths**2 + STRENGTHS[:, None] * lengths[0] ** 2)  # [strengths, directions]
        best = min(range(len(STRENGTHS)), key=lambda k: _left_out_error(directions, rotated, targets, shrunk[k]))
        inverse = shrunk[best] / lengths.clamp_min(torch.finfo(torch.float64).tiny)
        guess: Tensor = (seen[~self.known] - centre) @ back.t() @ (inverse[:, None] * rotated) + self.usual
        return guess

    def entries(self, guesses: Mapping[str, Tensor], rng: Generator) -> Comparison:
        """Which entries are above their column's median; "" is the attack, the others are baselines."""
        scale = self.values[self.known].std(dim=0).clamp_min(torch.finfo(torch.float64).tiny)
        ranked = {name: ((one - self.usual) / scale)[self.rows, self.columns] for name, one in guesses.items()}
        real, attack = torch.arange(len(self.rows)) < len(self.rows) // 2, ranked.pop("")
        return compare_rankings(attack, ranked or {"a guess": torch.zeros_like(attack)}, real, rng)

    def exact_rows(self, guesses: Mapping[str, Tensor]) -> Comparison:
        """Which of the unknown rows are guessed to within CLOSE of their length."""
        unknown = self.values[~self.known]
        allowed = CLOSE * torch.linalg.vector_norm(unknown, dim=1)
        right = {name: torch.linalg.vector_norm(one - unknown, dim=1) <= allowed for name, one in guesses.items()}
        return compare_shares(right.pop(""), right)


def _left_out_error(directions: Tensor, rotated: Tensor, targets: Tensor, shrunk: Tensor) -> float:
    """Of all known rows, each guessed from the others; the mean is left out, too."""
    left = targets - directions @ (shrunk[:, None] * rotated)
    leverage = (directions**2 * shrunk).sum(dim=1, keepdim=True) + 1 / len(targets)
    return float((left / (1 - leverage).clamp_min(1e-9)).square().sum())
