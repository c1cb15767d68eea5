"""Edges among training rows from the first gradient that a party receives.

Rows of one class have nearly one gradient, so most of what a gradient tells of edges is what labels alone tell; that is
the baseline here (ACSAC 2024). The server has dL/dz_L, each other publisher the gradient of its own rows.
"""

import torch
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import cosines, drawn_pairs, explained_alone
from vfgnn.audit.labels_from_gradient import training_gradient
from vfgnn.audit.others import of_each
from vfgnn.audit.statistics import compare_rankings
from vfgnn.audit.views import Truth, View
from vfgnn.data.holdings import Holding

GRADIENT_EDGES = Attack(
    name="edges from a gradient",
    who="server, publisher",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of another holder among training rows",
    metric="AUC",
    baseline="pairs of one true label; pairs with similar true features",
    helps="gradient_epsilon, label_epsilon, edge_epsilon; protocol = sealed",
    literature="link inference in vertical graphs, ACSAC 2024",
)


def edges_from_gradient(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """Pairs of training rows, ranked by the cosine of their gradients."""
    gradient, rows = training_gradient(view)

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        pairs, real = drawn_pairs(_among(holding, rows), rng)
        baselines = explained_alone(truth, about, rows[pairs])
        compared = compare_rankings(cosines(gradient, pairs), baselines, real, rng)
        return [AttackFinding(GRADIENT_EDGES, view.party, about, compared)]

    return of_each(view, truth, measure)


def _among(holding: Holding, rows: Tensor) -> Holding:
    """The holder's edges among these nodes, which are numbered anew."""
    place = torch.full((holding.size,), -1).index_put((rows,), torch.arange(len(rows)))
    edges = place[holding.edge_index]
    return Holding(torch.empty(len(rows), 0), edges[:, (edges >= 0).all(dim=0)])
