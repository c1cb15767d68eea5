"""A holder with edges learns of others' features from h0: which rows are alike, and unknown rows by known ones.

A random W nearly keeps the angles between rows, so inner products of rows of h0 are those of X_A and X_B together; the
attacker takes its own away. With some known rows of B, X_B is a linear function of h0 and X_A: exact, where as many
rows are known as there are dimensions and the reveals span X_B.
"""

import torch
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.h0 import h0_seen, revealed
from vfgnn.audit.inversion import CLOSE, NEEDS, PartlyKnown
from vfgnn.audit.others import of_each
from vfgnn.audit.statistics import compare_rankings
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding

PAIRS = 8_000
MOST_ALIKE = 0.9  # quantile of the true inner products: above it a pair counts as alike
WHO = "holder with edges"
HELPS = "initial_embedding = individual, few joint_layer_epochs; protocol = sealed"

GRAM = Attack(
    name="similar rows from h0",
    who=WHO,
    needs="nothing",
    target=Target.FEATURES,
    gets="which rows of another holder are alike: a tenth of all pairs",
    metric="AUC",
    baseline="similar own features",
    helps=HELPS,
    literature="random projections: Johnson & Lindenstrauss 1984",
)
KNOWN_ROWS = Attack(
    name="rows from h0 and known rows",
    who=WHO,
    needs=NEEDS,
    target=Target.FEATURES,
    gets="the other rows of another holder, exactly",
    metric=f"share of rows with an error of at most {CLOSE:g} of the row's length",
    baseline="the same regression on own features",
    helps=HELPS,
    literature="linear algebra",
)
KNOWN_ENTRIES = Attack(
    name="entries from h0 and known rows",
    who=WHO,
    needs=NEEDS,
    target=Target.FEATURES,
    gets="the other rows of another holder: which of two entries of a column is the larger one",
    metric="AUC",
    baseline="the same regression on own features",
    helps=HELPS,
    literature="ridge inversion of representations: He, Zhang & Lee 2019",
)


def features_from_h0(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By all reveals that were kept."""
    own, seen, linear = view.own_holding.x.double(), torch.cat(h0_seen(view), dim=1), revealed(view)

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        x = holding.x.double()
        known = PartlyKnown.of(x, rng)
        guesses = {"": known.guessed_from(torch.cat([*linear, own], dim=1)), "own features": known.guessed_from(own)}
        compared = ((KNOWN_ROWS, known.exact_rows(guesses)), (KNOWN_ENTRIES, known.entries(guesses, rng)))
        found = [AttackFinding(attack, view.party, about, one) for attack, one in compared]
        return [*_alike(view, about, seen, own, x, rng), *found]

    return of_each(view, truth, measure)


def _alike(view: View, about: str, seen: Tensor, own: Tensor, x: Tensor, rng: Generator) -> list[AttackFinding]:
    """Inner products less the multiple of the own ones that fits best."""
    pairs = torch.randint(len(x), (2, PAIRS), generator=rng)
    pairs = pairs[:, pairs[0] != pairs[1]]
    real, together, mine = (_centred((rows[pairs[0]] * rows[pairs[1]]).sum(dim=1)) for rows in (x, seen, own))
    alike = real > real.quantile(MOST_ALIKE)
    if not alike.any():
        raise NotInView("rows that are more alike than others")
    length = (mine @ mine).clamp_min(torch.finfo(torch.float64).tiny)
    apart = together - mine * (mine @ together) / length
    compared = compare_rankings(apart, {"own features": mine}, alike, rng)
    return [AttackFinding(GRAM, view.party, about, compared)]


def _centred(values: Tensor) -> Tensor:
    return values - values.mean()
