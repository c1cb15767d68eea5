"""The server reads edges and degrees off the rows that holders publish, and edges off z_L, which it computes from them.

A row is a mean over a neighbourhood, so two rows of neighbours are alike. With `combine = "confidence"` its length is a
function of the node's degree.
"""

import torch
from torch import Generator, Tensor

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import cosines, drawn_pairs, explained_alone
from vfgnn.audit.others import of_each
from vfgnn.audit.statistics import compare_rankings, compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding
from vfgnn.split.program import HIDDEN_EVALUATED, LOCAL_EMBEDDINGS

ALONE = "pairs of one true label; pairs with similar true features"
COSINE = "cosine of posteriors: He et al. 2021; labels alone: link inference in vertical graphs, ACSAC 2024"

ROW_EDGES = Attack(
    name="edges from published rows",
    who="server",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of a holder",
    metric="AUC",
    baseline=ALONE,
    helps="edge_epsilon, row_epsilon; protocol = sealed",
    literature=COSINE,
)
HIDDEN_EDGES = Attack(
    name="edges from z_L at the server",
    who="server",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of a holder, among those of all",
    metric="AUC",
    baseline=ALONE,
    helps="edge_epsilon, row_epsilon; protocol = sealed",
    literature=COSINE,
)
ROW_DEGREES = Attack(
    name="degrees from the lengths of rows",
    who="server",
    needs="nothing",
    target=Target.DEGREES,
    gets="the degree of each node, up to confidence_degree",
    metric="share of nodes",
    baseline="the most frequent degree",
    helps="combine = mean, concat or regression; edge_epsilon",
    literature="algebra",
)


def edges_from_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By the rows of the predictions, for each holder that publishes."""
    return of_each(
        view, truth, lambda about, held: [_ranked(ROW_EDGES, view, truth, about, held, last_rows(view, about), rng)]
    )


def edges_from_hidden(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By z_L of the predictions."""
    seen = _of_all_nodes(view, view.sent(HIDDEN_EVALUATED, view.agreement.label_holder)[-1])
    return of_each(view, truth, lambda about, held: [_ranked(HIDDEN_EDGES, view, truth, about, held, seen, rng)])


def degrees_from_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """With `combine = "confidence"`, unless rows are noised."""
    settings = view.agreement.settings
    if not settings.tells_degrees:
        raise NotInView("rows whose lengths tell degrees: combine = confidence")
    most = settings.confidence_degree

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        length = torch.linalg.vector_norm(last_rows(view, about).double(), dim=1)
        guess = (length * (most + 0.5) - 0.5).round()  # the inverse of cg1_edges.confidence_weight
        degree = torch.bincount(holding.edge_index[1], minlength=holding.nodes)[: len(guess)].clamp_max(most)
        usual = degree == degree.bincount().argmax()
        return [AttackFinding(ROW_DEGREES, view.party, about, compare_shares(guess == degree, {"usual": usual}))]

    return of_each(view, truth, measure)


def last_rows(view: View, about: str) -> Tensor:
    """What a holder published for the predictions [nodes, d]."""
    return _of_all_nodes(view, view.received(LOCAL_EMBEDDINGS, about)[-1])


def sent_rows(truth: Truth, about: str) -> Tensor:
    """The same, by what the auditor knows of it."""
    return truth.sent(LOCAL_EMBEDDINGS, about, SERVER)[-1]


def _of_all_nodes(view: View, rows: Tensor) -> Tensor:
    if len(rows) != view.agreement.nodes:
        raise NotInView("rows of all nodes: the predictions")
    return rows


def _ranked(
    attack: Attack, view: View, truth: Truth, about: str, holding: Holding, rows: Tensor, rng: Generator
) -> AttackFinding:
    pairs, real = drawn_pairs(holding, rng)
    compared = compare_rankings(cosines(rows, pairs), explained_alone(truth, about, pairs), real, rng)
    return AttackFinding(attack, view.party, about, compared)
