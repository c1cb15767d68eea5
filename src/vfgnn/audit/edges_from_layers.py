"""A holder with edges looks for other holders' edges in what it sees of two successive layers.

h0 goes into every holder's GNN, and the reveals show it. The rows that come out are what the label holder rebuilds from
z_L, or an affine image of them. A GNN is close to (neighbourhood weights) x h0 x (small matrix). So the canonical
directions of both (Hotelling 1936) undo the small matrix: the row of a node then looks like the h0 of its neighbours.
Every holder with edges can also rank pairs by h0 alone, which holds the others' features and, once trained, labels.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import cosines, drawn_pairs, same_label
from vfgnn.audit.h0 import h0_seen
from vfgnn.audit.others import of_each
from vfgnn.audit.rows_from_hidden import rebuilt_rows
from vfgnn.audit.statistics import compare_rankings
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding

FLOOR = 1e-3  # of the largest variance: what is below is taken for noise

LAYER_EDGES = Attack(
    name="edges from two successive layers",
    who="label holder with edges",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of another holder",
    metric="AUC",
    baseline="pairs of one label, similar own features",
    helps="edge_epsilon, initial_embedding = individual; protocol = sealed",
    literature="influence of a node on another: Wu et al. 2022 (LinkTeller); canonical directions: Hotelling 1936",
)
H0_EDGES = Attack(
    name="edges from h0",
    who="holder with edges",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of another holder",
    metric="AUC",
    baseline="pairs with similar own features; pairs with similar true features; at the label holder, of one label",
    helps="initial_embedding = individual, few joint_layer_epochs",
    literature="cosine of posteriors: He et al. 2021",
)


def edges_from_layers(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """For the label holder: each node's row beside the h0 of the other, both ways."""
    inputs, rows = h0_seen(view)[-1], rebuilt_rows(view)

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        if about not in rows:
            raise NotInView(f"rows of {about}: it publishes none")
        pairs, real = drawn_pairs(holding, rng)
        out, into = canonical(rows[about], inputs.tanh())
        scores = (out[pairs[0]] * into[pairs[1]] + out[pairs[1]] * into[pairs[0]]).sum(dim=1)
        compared = compare_rankings(scores, _own(view, pairs), real, rng)
        return [AttackFinding(LAYER_EDGES, view.party, about, compared)]

    return of_each(view, truth, measure)


def edges_from_h0(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By the cosine of two rows of h0, as it is after the last refresh that was kept."""
    seen = h0_seen(view)[-1]

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        pairs, real = drawn_pairs(holding, rng)
        alone = {"features alone": cosines(holding.x, pairs)}
        compared = compare_rankings(cosines(seen, pairs), {**_own(view, pairs), **alone}, real, rng)
        return [AttackFinding(H0_EDGES, view.party, about, compared)]

    return of_each(view, truth, measure)


def canonical(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Unit rows in the directions in which both are most correlated."""
    one, other = _whitened(first), _whitened(second)
    left, _, right = torch.linalg.svd(one.t() @ other, full_matrices=False)
    return F.normalize(one @ left, dim=1), F.normalize(other @ right.t(), dim=1)


def _whitened(seen: Tensor) -> Tensor:
    centred = seen.nan_to_num().double()
    centred = centred - centred.mean(dim=0)
    variances, directions = torch.linalg.eigh(centred.t() @ centred / len(centred))
    weights = (variances.clamp_min(0) + FLOOR * variances[-1]).clamp_min(torch.finfo(torch.float64).tiny)
    white: Tensor = centred @ (directions / weights.sqrt())
    return white


def _own(view: View, pairs: Tensor) -> dict[str, Tensor]:
    scores = {"own features": cosines(view.own_holding.x, pairs)}
    return scores if view.labels is None else {**scores, "same label": same_label(view.labels.y, pairs)}
