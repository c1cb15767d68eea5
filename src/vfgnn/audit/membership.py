"""Which rows trained: from a gradient that is 0 in all others, beside what the protocol tells in so many words.

With `publish = "needed"`, and in the sealed protocol, the label holder announces the training rows to those that need
them. That is public among them, so it is their baseline: an attack counts by what it finds beyond the announcement.
"""

import torch
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.labels_from_gradient import gradient_of
from vfgnn.audit.statistics import compare_rankings
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.sealed.holder import TRAIN
from vfgnn.sealed.program import ROW_ROLES as SEALED_ROLES
from vfgnn.split.program import ROW_ROLES

MEMBERS = Attack(
    name="training rows",
    who="server, holder",
    needs="nothing",
    target=Target.MEMBERSHIP,
    gets="which nodes are training rows",
    metric="AUC",
    baseline="the announcement of the training rows, where the party receives it",
    helps="gradient_epsilon, where nothing is announced",
    literature="membership inference: Shokri et al. 2017; here from the sparsity of a gradient",
)


def training_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """Held against the label holder's training rows."""
    labels, agreement = truth.known_labels, view.agreement
    if view.party == agreement.label_holder:
        raise NotInView("training rows that it did not choose")
    member = torch.zeros(agreement.nodes, dtype=torch.bool).index_fill(0, labels.train, value=True)
    announced = _announced(view)
    scores = announced if announced is not None else _lengths(view)
    baseline = {"a guess": torch.zeros(agreement.nodes)} if announced is None else {"announced": announced}
    compared = compare_rankings(scores, baseline, member, rng)
    return [AttackFinding(MEMBERS, view.party, agreement.label_holder, compared)]


def _announced(view: View) -> Tensor | None:
    """1 for each training row, as the label holder said."""
    for kind in (ROW_ROLES, SEALED_ROLES):
        try:
            roles = view.received(kind, view.agreement.label_holder)[0]
        except NotInView:
            continue
        told: Tensor = (roles == TRAIN).double()
        return told
    return None


def _lengths(view: View) -> Tensor:
    """Of the first gradient's rows."""
    gradient = gradient_of(view)
    if len(gradient) != view.agreement.nodes:
        raise NotInView("a gradient of all nodes, or an announcement")
    lengths: Tensor = torch.linalg.vector_norm(gradient.double(), dim=1)
    return lengths
