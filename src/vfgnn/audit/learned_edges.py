"""An edge attack that learns from the attacker's own edges what an edge looks like, and looks for others' edges.

Gradient boosting ranks pairs by what the attacker knows of them (pair_features.py). It is fitted to its own edges, each
seen from a graph that lacks it, and used on pairs of which the other holder knows which ones are edges. With and
without what the protocol opened it is the same attack: the difference is what was opened.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits
from torch import Generator, Tensor, from_numpy

from vfgnn.audit.edges import drawn_pairs
from vfgnn.audit.pair_features import Known, own_columns
from vfgnn.audit.views import NotInView, View
from vfgnn.model.propagation import Floats, Integers

PARTS = 2  # of the own edges: each part is looked at from a graph of the others
ROUNDS = 200
MOST = 20_000  # own edges that are learnt from: bounds the time
More = Callable[[Integers, Tensor], Floats]
"""Further columns of pairs: from the edges of the graph that the attacker looks from, and the pairs."""


@dataclass(frozen=True, repr=False)
class Seen:
    """Pairs, the graph that they are seen from, and what is known of each pair."""

    edges: Integers  # [2, edges]
    pairs: Tensor  # [2, pairs]
    columns: Floats  # [pairs, columns]

    @staticmethod
    def of(known: Known, edges: Integers, pairs: Tensor) -> "Seen":
        """From own data alone."""
        return Seen(edges, pairs, own_columns(known, edges, pairs))

    def with_more(self, more: More | None) -> Floats:
        """Columns [pairs, columns] for the model."""
        return self.columns if more is None else np.hstack([self.columns, more(self.edges, self.pairs)])


def known_to(view: View) -> Known:
    """The label holder's own data."""
    y = view.own_labels.y
    return Known(view.own_holding.x[: len(y)].double().numpy(), y.numpy(), view.agreement.classes)


@dataclass(frozen=True, repr=False)
class LearnedAttack:
    """What is learnt from, and the pairs that are asked about."""

    known: Known
    parts: tuple[Seen, ...]
    real: Tensor  # of all parts
    asked: Seen
    seed: int

    @staticmethod
    def of(view: View, asked: Tensor, rng: Generator) -> "LearnedAttack":
        """By a holder with labels, features and edges."""
        held, known = view.own_holding, known_to(view)
        edges = held.edge_index[:, (held.edge_index < len(known.y)).all(dim=0)].numpy()
        pairs, real = drawn_pairs(held, rng)
        chosen = torch.randperm(len(real), generator=rng)[: 2 * MOST]
        pairs, real = pairs[:, chosen], real[chosen]
        inside = [torch.arange(len(real)) % PARTS == k for k in range(PARTS)]
        if any(len(torch.unique(real[part])) < 2 for part in inside):
            raise NotInView("more edges of its own, to learn from")
        parts = tuple(Seen.of(known, pairs[:, real & ~part].numpy(), pairs[:, part]) for part in inside)
        seed = int(torch.randint(2**31, (1,), generator=rng))
        ordered = torch.cat([real[part] for part in inside])
        return LearnedAttack(known, parts, ordered, Seen.of(known, edges, asked), seed)

    def scores(self, more: More | None = None) -> Tensor:
        """How much each pair that is asked about looks like an edge [pairs]."""
        model = HistGradientBoostingClassifier(
            max_iter=ROUNDS, learning_rate=0.05, max_leaf_nodes=15, l2_regularization=1.0, random_state=self.seed
        )
        columns = np.concatenate([part.with_more(more) for part in self.parts])
        with threadpool_limits(1):  # its threads wait for each other in busy loops: minutes, on a machine that is busy
            model.fit(columns, self.real.numpy())
            return from_numpy(model.predict_proba(self.asked.with_more(more))[:, 1])
