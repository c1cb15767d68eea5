"""A party completes the model by itself: a classifier on its own rows, trained on few labels (Fu et al. 2022).

The rows of a trained model are separated by class, because labels trained them. The server has z_L of all nodes; each
publisher has its own rows, for which labels pay through the gradient that comes back.
"""

import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Generator, Tensor, from_numpy

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.statistics import compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.model.propagation import Smoothing, union
from vfgnn.split.program import HIDDEN_EVALUATED, LOCAL_EMBEDDINGS

FEW = 4  # labels of each class
DRAWS = 5
STRENGTH = 100.0  # of a linear classifier on unit rows: large means few restraints

COMPLETION = Attack(
    name="labels by completing the model",
    who="server, publisher",
    needs=f"{FEW} labels of each class",
    target=Target.LABELS,
    gets="the labels of all other nodes",
    metric=f"share of nodes that are right for most of {DRAWS} choices of the known ones",
    baseline="the most frequent class; at a holder, the same with its own features over its own edges",
    helps="row_epsilon at the server; label_epsilon, gradient_epsilon; protocol = sealed",
    literature="passive model completion: Fu et al. 2022",
)


def labels_from_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By the rows of the predictions."""
    label_holder, labels = view.agreement.label_holder, truth.known_labels
    if view.party == label_holder:
        raise NotInView("labels that it does not have")
    server = view.party == SERVER
    rows = view.sent(HIDDEN_EVALUATED, label_holder)[-1] if server else view.sent(LOCAL_EMBEDDINGS, SERVER)[-1]
    if len(rows) != view.agreement.nodes:
        raise NotInView("rows of all nodes: the predictions")
    labelled = (labels.y >= 0).nonzero()[:, 0]
    y = labels.y[labelled]
    seen = {"": rows[labelled]} if server else {"": rows[labelled], "own data": _smooth(view)[labelled]}
    right, asked = {name: torch.zeros(len(y)) for name in seen}, torch.zeros(len(y))
    for _ in range(DRAWS):
        known = _few(y, rng)
        others = torch.ones(len(y), dtype=torch.bool).index_fill(0, known, value=False)
        asked += others
        for name, one in seen.items():
            right[name] += others & (_guessed(one, y, known) == y)
    hits = {name: count[asked > 0] > asked[asked > 0] / 2 for name, count in right.items()}
    hits["most frequent class"] = (y == y.bincount().argmax())[asked > 0]
    return [AttackFinding(COMPLETION, view.party, label_holder, compare_shares(hits.pop(""), hits))]


def _few(y: Tensor, rng: Generator) -> Tensor:
    """FEW rows of each class."""
    order = torch.randperm(len(y), generator=rng)
    by_class = order[torch.argsort(y[order], stable=True)]
    begins = torch.searchsorted(y[by_class].contiguous(), y[by_class].contiguous())
    return by_class[torch.arange(len(y)) - begins < FEW]


def _guessed(rows: Tensor, y: Tensor, known: Tensor) -> Tensor:
    """The class of every row, by a linear classifier."""
    unit = F.normalize(rows.nan_to_num().double(), dim=1).numpy()
    fitted = LogisticRegression(C=STRENGTH, max_iter=300).fit(unit[known.numpy()], y[known].numpy())
    return from_numpy(fitted.predict(unit))


def _smooth(view: View) -> Tensor:
    """The holder's own features over its own edges."""
    held = view.own_holding
    graph = Smoothing(union([held.edge_index.numpy()], held.size), hops=10, teleport=0.1)
    return from_numpy(graph.apply(held.x.double().numpy()))[: view.agreement.nodes]
