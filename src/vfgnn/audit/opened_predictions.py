"""Sealed: what the label holder makes of the predictions and inner products that are opened to it.

Predictions depend on everybody's edges and columns; that is their purpose. So the label holder is compared twice: with
itself before anything was opened, and with the same attack on what the clear model on pooled data says. The protocol
adds nothing if the attack does no better on its own predictions than on those.
A label holder may also train again and again, with labels that it invents, as often as the limits of the federation
allow. It is the only party that could; what that gives is measured on the clear model, which answers alike.
"""

from contextlib import suppress

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import drawn_pairs
from vfgnn.audit.features_from_rows import own_data
from vfgnn.audit.inner_products import Explained
from vfgnn.audit.inversion import NEEDS, PartlyKnown
from vfgnn.audit.learned_edges import LearnedAttack, More, known_to
from vfgnn.audit.others import of_each
from vfgnn.audit.pair_features import NEAR, opened_columns
from vfgnn.audit.statistics import compare_rankings
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding, Labels
from vfgnn.files import Limits
from vfgnn.model.propagation import Smoothing, union

OWN = "nothing opened"
INVENTED = Limits().max_trainings - 1  # trainings with invented labels, after the true one
ROWS_A_CLASS = 20  # that an invented training has
WHO, LIAR = "label holder", "label holder that invents labels"
METRIC, BASELINE = "AUC", "the same attack from own data and all labels, with nothing opened"
LEARNED = "gradient boosting on own edges; as in link inference in vertical graphs, ACSAC 2024"
RIDGE = "ridge inversion of representations: He, Zhang & Lee 2019"
EDGES, ENTRIES = "the edges of another holder", "the other rows: which of two entries of a column is the larger one"
CLASSES_HELP, SCORES_HELP = "fewer opened rows (max_opened_rows)", "sealed.opens = classes"
LIMITS_HELP = "max_trainings = 1 or 2 in [limits]"


CLASS_EDGES = Attack(
    "edges from classes", WHO, "own edges", Target.EDGES, EDGES, METRIC, BASELINE, CLASSES_HELP, LEARNED
)
SCORE_EDGES = Attack("edges from scores", WHO, "own edges", Target.EDGES, EDGES, METRIC, BASELINE, SCORES_HELP, LEARNED)
PRODUCT_EDGES = Attack(
    "edges from inner products", WHO, "own edges", Target.EDGES, EDGES, METRIC, BASELINE, LIMITS_HELP, LEARNED
)
INVENTED_EDGES = Attack(
    "edges from invented labels", LIAR, "own edges", Target.EDGES, EDGES, METRIC, BASELINE, LIMITS_HELP, LEARNED
)
OPENED_ENTRIES = Attack(
    "features from predictions", WHO, NEEDS, Target.FEATURES, ENTRIES, METRIC, BASELINE, CLASSES_HELP, RIDGE
)
INVENTED_ENTRIES = Attack(
    "features from invented labels", LIAR, NEEDS, Target.FEATURES, ENTRIES, METRIC, BASELINE, LIMITS_HELP, RIDGE
)


def edges_from_predictions(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """With classes, or scores where all agreed to open them."""
    attack, pooled = SCORE_EDGES if _scored(view) else CLASS_EDGES, pooled_predictions(view, truth)
    twin = None if pooled is None else _beside(view, pooled)
    return _edges(view, truth, rng, attack, _beside(view, view.told.predictions), twin)


def edges_from_inner_products(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """With the inner products of the basis, which need no prediction."""
    return _edges(view, truth, rng, PRODUCT_EDGES, Explained.of(view).columns, None)


def edges_from_invented_labels(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """With the true training's predictions, and those of trainings with invented labels."""
    return _edges(view, truth, rng, INVENTED_EDGES, _beside(view, invented_predictions(view, truth, rng)), None)


def features_from_predictions(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """With some rows of the other holder's features known."""
    return _entries(view, truth, rng, OPENED_ENTRIES, view.told.predictions, pooled_predictions(view, truth))


def features_from_invented_labels(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """The same with trainings with invented labels."""
    return _entries(view, truth, rng, INVENTED_ENTRIES, invented_predictions(view, truth, rng), None)


def pooled_predictions(view: View, truth: Truth) -> Tensor | None:
    """What the clear model on pooled data would have opened [nodes, classes]; None where the auditor lacks the data."""
    if truth.pooled is None:
        return None
    return _as_opened(view, truth.pooled(truth.known_labels))


def invented_predictions(view: View, truth: Truth, rng: Generator) -> Tensor:
    """Of the true training and of the invented ones, side by side [nodes, columns]."""
    if truth.pooled is None:
        raise NotInView("the data of all holders: trainings with invented labels are done in the clear")
    nodes, classes = view.agreement.nodes, view.agreement.classes
    rows = min(ROWS_A_CLASS * classes, nodes - 2 * classes)
    opened = [view.told.predictions]
    for _ in range(INVENTED):
        order = torch.randperm(nodes, generator=rng)
        y = torch.randint(classes, (nodes,), generator=rng).index_copy(0, order[:classes], torch.arange(classes))
        train, val, test = torch.split(order[: rows + 2 * classes], [rows, classes, classes])
        opened.append(_as_opened(view, truth.pooled(Labels(y, train, val, test, classes))))
    return torch.cat([one.double() for one in opened], dim=1)


def _as_opened(view: View, scores: Tensor) -> Tensor:
    """Scores, or one-hot classes, as the federation opens them."""
    return scores if _scored(view) else F.one_hot(scores.argmax(dim=1), scores.shape[1]).double()


def _scored(view: View) -> bool:
    return view.agreement.settings.sealed.opens == "scores"


def _beside(view: View, predictions: Tensor) -> More:
    """What predictions add to a pair."""
    known = known_to(view)
    return lambda _, pairs: opened_columns(known, predictions, pairs)


def _edges(
    view: View, truth: Truth, rng: Generator, attack: Attack, more: More, twin: More | None
) -> list[AttackFinding]:
    """The learned attack with `more`, and with nothing more; `twin`: what the clear model adds in its place."""
    drawn = _drawn(view, truth, rng)
    learned = LearnedAttack.of(view, torch.cat([pairs for pairs, _ in drawn.values()], dim=1), rng)
    sizes = [len(real) for _, real in drawn.values()]
    found, nothing = (torch.split(learned.scores(one), sizes) for one in (more, None))
    pooled = [None] * len(sizes) if twin is None else torch.split(learned.scores(twin), sizes)
    findings = []
    for (about, (_, real)), scores, before, clear in zip(drawn.items(), found, nothing, pooled, strict=True):
        compared = compare_rankings(scores, {OWN: before}, real, rng)
        beside = None if clear is None else compare_rankings(clear, {OWN: before}, real, rng).attack
        findings.append(AttackFinding(attack, view.party, about, compared, beside))
    return findings


def _drawn(view: View, truth: Truth, rng: Generator) -> dict[str, tuple[Tensor, Tensor]]:
    """Pairs of each other holder that has enough edges, and which of them are edges."""
    drawn = {}
    for about, holding in truth.holdings.items():
        if about != view.party:
            with suppress(NotInView):
                drawn[about] = drawn_pairs(holding, rng)
    if not drawn:
        raise NotInView("edges of another holder")
    return drawn


def _entries(
    view: View, truth: Truth, rng: Generator, attack: Attack, opened: Tensor, pooled: Tensor | None
) -> list[AttackFinding]:
    """Ridge regressions on own data, with and without what was opened."""
    mine = _surroundings(view)

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        known = PartlyKnown.of(holding.x[: len(mine)], rng)
        seen = {"": torch.cat([mine, opened], dim=1), OWN: mine}
        compared = known.entries({name: known.guessed_from(one) for name, one in seen.items()}, rng)
        beside = None
        if pooled is not None:
            guesses = {"": known.guessed_from(torch.cat([mine, pooled], dim=1))}
            beside = known.entries(guesses, rng).attack
        return [AttackFinding(attack, view.party, about, compared, beside)]

    return of_each(view, truth, measure)


def _surroundings(view: View) -> Tensor:
    """Own features and labels of each node, and those around it over the own edges."""
    own, held = own_data(view), view.own_holding
    inside = held.edge_index[:, (held.edge_index < len(own)).all(dim=0)]
    graph = Smoothing(union([inside.numpy()], len(own)), hops=NEAR, teleport=0.0)
    return torch.cat([own, torch.from_numpy(graph.apply(own.numpy()))], dim=1)
