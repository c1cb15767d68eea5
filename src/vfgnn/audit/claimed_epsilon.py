"""A lower bound on the epsilon of a run's mechanisms, from the best distinguisher of each. It must not pass the claim.

The mechanism that the run used draws once over many canaries: pairs, labels or rows of which a coin chose one of two
values beforehand. The distinguisher guesses the coin from what comes out. With pure epsilon each guess is right with a
probability of at most e^epsilon / (1 + e^epsilon), whatever the others are (Steinke, Nasr & Jagielski 2023: one run).
So the share of right guesses bounds epsilon from below, with an exact interval (Clopper & Pearson 1934). For Gaussian
noise the bound comes from the rates of a threshold on the likelihood ratio, less delta.
Draws come from a seed of the audit's; nothing of the run's own noise is looked at, and no holder's data.
"""

import math

import torch
from scipy.stats import binomtest
from torch import Generator, Tensor

from vfgnn import randomness
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.statistics import HARMLESS, LEAKS, Comparison, Measured
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.privacy.input_perturbation import flip_labels, flip_pairs, pair_count
from vfgnn.privacy.mechanisms import GaussianMechanism
from vfgnn.privacy.publishing import gradient_mechanism, row_mechanism
from vfgnn.randomness import Stream

CANARIES = 100_000
MOST_PAIRS = 2**22  # to choose canaries from: bounds the memory
WIDTH = 3  # of rows that are noised; James-Stein needs so many
CONFIDENCE = 0.999  # of an interval: at 95 % every fortieth honest mechanism would be accused
WHO, NEEDS = "anybody who sees what is noised", "which two values are possible"
METRIC = f"lower bound on epsilon, interval of {CONFIDENCE:.1%}"
BASELINE, HELPS = "the epsilon that is claimed", "an exact sampler (docs/privacy.md)"
ONE_RUN = "one training run: Steinke, Nasr & Jagielski 2023"
TESTS = "threshold on the likelihood ratio: Nasr et al. 2021"

EDGE_EPSILON = Attack(
    "epsilon of noised edges", WHO, NEEDS, Target.EPSILON, "whether a pair is an edge", METRIC, BASELINE, HELPS, ONE_RUN
)
LABEL_EPSILON = Attack(
    "epsilon of noised labels", WHO, NEEDS, Target.EPSILON, "which label a row has", METRIC, BASELINE, HELPS, ONE_RUN
)
ROW_EPSILON = Attack(
    "epsilon of noised rows", WHO, NEEDS, Target.EPSILON, "which of two rows was sent", METRIC, BASELINE, HELPS, TESTS
)


def epsilon_of_inputs(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """Of noise on edges and labels, which is drawn once."""
    privacy, found, stream = view.agreement.settings.privacy, list[AttackFinding](), _stream(rng)
    if privacy.edge_epsilon is not None:
        measured = pure(privacy.edge_epsilon, *edge_guesses(privacy.edge_epsilon, view.agreement.nodes, stream, rng))
        found = [AttackFinding(EDGE_EPSILON, view.party, about, measured) for about in truth.holdings]
    if privacy.label_epsilon is not None:
        guesses = label_guesses(privacy.label_epsilon, view.agreement.classes, stream, rng)
        about = view.agreement.label_holder
        found.append(AttackFinding(LABEL_EPSILON, view.party, about, pure(privacy.label_epsilon, *guesses)))
    if not found:
        raise NotInView("noise on edges or labels: edge_epsilon, label_epsilon")
    return found


def epsilon_of_rows(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """Of one release of a row, or a gradient's row; with `per = "run"`, of one of many that share the claim."""
    settings, found = view.agreement.settings, list[AttackFinding]()
    privacy, epochs = settings.privacy, settings.epochs
    used = (
        (row_mechanism(privacy, epochs), privacy.row_epsilon),
        (gradient_mechanism(privacy, epochs), privacy.gradient_epsilon),
    )
    for mechanism, claimed in used:
        if mechanism is not None and claimed is not None:
            measured = gaussian(mechanism, claimed, privacy.delta, _stream(rng), rng)
            found += [AttackFinding(ROW_EPSILON, view.party, about, measured) for about in view.agreement.publishers]
    if not found:
        raise NotInView("noise on rows: row_epsilon, gradient_epsilon")
    return found


def edge_guesses(epsilon: float, nodes: int, stream: Stream, rng: Generator) -> tuple[Tensor, Tensor]:
    """Whether each canary pair was an edge, and whether it is listed [canaries]."""
    total = pair_count(nodes)
    canaries = torch.randperm(min(total, MOST_PAIRS), generator=rng)[:CANARIES].sort().values
    edge = torch.rand(len(canaries), generator=rng) < 0.5
    listed = flip_pairs(canaries[edge], nodes, epsilon, stream, most=total)
    return edge, torch.isin(canaries, listed)


def label_guesses(epsilon: float, classes: int, stream: Stream, rng: Generator) -> tuple[Tensor, Tensor]:
    """Whether each canary label was the second of its two, and whether it is now; a third one says nothing of it."""
    first = torch.randint(classes, (CANARIES,), generator=rng)
    second = (first + 1 + torch.randint(classes - 1, (CANARIES,), generator=rng)) % classes
    chosen = torch.rand(CANARIES, generator=rng) < 0.5
    noised = flip_labels(torch.where(chosen, second, first), classes, epsilon, stream)
    told = (noised == first) | (noised == second)
    return chosen[told], (noised == second)[told]


def pure(claimed: float, truth: Tensor, guess: Tensor) -> Comparison:
    """From the share of right guesses: e^epsilon / (1 + e^epsilon) at most."""
    n = len(truth)
    value, low, high = (_log_odds(one, n) for one in _rate(truth == guess))
    return _compared(claimed, value, low, high, n)


def gaussian(mechanism: GaussianMechanism, claimed: float, delta: float, stream: Stream, rng: Generator) -> Comparison:
    """From rows that are as long as allowed, or their neighbours: nothing, or the opposite row.

    The noise of a value tells all that there is to tell; half of the canaries choose the threshold.
    """
    there = torch.rand(CANARIES, generator=rng) < 0.5
    rows = torch.zeros(CANARIES, WIDTH, dtype=torch.float64)
    rows[:, 0] = mechanism.clip_norm * torch.where(there, 1.0, 0.0 if mechanism.adjacency == "zero_out" else -1.0)
    seen = mechanism.release(rows, stream)[:, 0]
    first, second = (slice(0, CANARIES // 2), slice(CANARIES // 2, None))
    levels = torch.linspace(0.5, 0.9995, 40, dtype=torch.float64)
    tests = [(sign, one) for sign in (1, -1) for one in torch.quantile(sign * seen[first], levels).tolist()]
    sign, threshold = max(tests, key=lambda t: _bounds(t[0] * seen[first] > t[1], there[first] == (t[0] > 0), delta)[1])
    positive, real = sign * seen[second] > threshold, there[second] == (sign > 0)
    return _compared(claimed, *_bounds(positive, real, delta), len(real))


def _bounds(positive: Tensor, real: Tensor, delta: float) -> tuple[float, float, float]:
    """Epsilon from the rates of a test, and both ends: log((true positives - delta) / false positives)."""
    hit, wrong = (_rate(positive[part]) for part in (real, ~real))
    least = 1 / len(real)
    value, low, high = (
        math.log(max(true - delta, least) / max(false, least))
        for true, false in zip(hit, (wrong[0], wrong[2], wrong[1]), strict=True)
    )
    return value, low, high


def _rate(positive: Tensor) -> tuple[float, float, float]:
    """The share that is positive, and its interval."""
    found, n = int(positive.sum()), len(positive)
    interval = binomtest(found, n).proportion_ci(CONFIDENCE, method="exact")
    return found / n, float(interval.low), float(interval.high)


def _log_odds(share: float, n: int) -> float:
    """What epsilon makes guesses right so often; n guesses tell no more than log(n)."""
    inside = min(max(share, 1 / (n + 1)), n / (n + 1))
    return math.log(inside / (1 - inside))


def _compared(claimed: float, value: float, low: float, high: float, n: int) -> Comparison:
    """A mechanism leaks if even the low end is above what is claimed."""
    verdict = LEAKS if low > claimed else HARMLESS
    claim = {"claimed": Measured(claimed, claimed, claimed, n)}
    return Comparison(Measured(value, low, high, n), claim, (low - claimed, high - claimed), verdict)


def _stream(rng: Generator) -> Stream:
    """Of the audit's own: it hides nothing."""
    return Stream(randomness.insecure_seed(int(torch.randint(2**62, (1,), generator=rng))), "audit")
