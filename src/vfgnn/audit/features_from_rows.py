"""Features from rows of a GNN, with some known rows: by the server, and by the label holder, which rebuilds rows.

A published row is a smooth function of the features around a node. A ridge regression from rows to known features is
the simplest inversion; what it guesses of the other nodes is held against what their columns usually are.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.inversion import NEEDS, PartlyKnown
from vfgnn.audit.others import of_each
from vfgnn.audit.published_rows import last_rows
from vfgnn.audit.rows_from_hidden import rebuilt_rows
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding

ROW_ENTRIES = Attack(
    name="features from rows",
    who="server, label holder",
    needs=NEEDS,
    target=Target.FEATURES,
    gets="the other rows: which of two entries of a column is the larger one",
    metric="AUC",
    baseline="a guess; at the label holder, the same regression on own features and labels",
    helps="row_epsilon, a hidden layer; protocol = sealed",
    literature="ridge inversion of representations: He, Zhang & Lee 2019; Luo et al. 2021",
)


def features_from_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By the rows of the predictions."""

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        known = PartlyKnown.of(holding.x[: view.agreement.nodes], rng)
        if view.party == SERVER:
            guesses = {"": known.guessed_from(last_rows(view, about))}
        else:
            rows, mine = rebuilt_rows(view), own_data(view)
            if about not in rows:
                raise NotInView(f"rows of {about}: it publishes none")
            guesses = {"": torch.cat([rows[about], mine], dim=1), "own features and labels": mine}
            guesses = {name: known.guessed_from(seen) for name, seen in guesses.items()}
        return [AttackFinding(ROW_ENTRIES, view.party, about, known.entries(guesses, rng))]

    return of_each(view, truth, measure)


def own_data(view: View) -> Tensor:
    """The label holder's features and labels, side by side [nodes, p + classes]; a missing label is a row of zeros."""
    y = view.own_labels.y
    hot = F.one_hot(y.clamp_min(0), view.agreement.classes) * (y >= 0)[:, None]
    return torch.cat([view.own_holding.x[: len(y)].double(), hot.double()], dim=1)
