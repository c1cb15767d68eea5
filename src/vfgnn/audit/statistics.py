"""How well an attack does, beside its baselines, as auditors expect it.

A figure has a 95 % interval. Rankings (is this pair an edge?) have an AUC with a bootstrap interval, the true positive
rate at 1 %, 0.1 % and 0 % false positives and the advantage; their thresholds are chosen on one half of the cases and
reported on the other. Shares (is this row right?) have an exact interval (Clopper & Pearson 1934).
The verdict compares intervals: a point alone decides nothing. Cases are resampled one by one. Pairs that share a node
are not independent, so an interval over pairs is that of their draw from this graph, not from another one.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from scipy.stats import binomtest
from torch import Generator, Tensor

MARGIN = 0.02  # an attack that is better than its baseline by no more than this is called harmless
RESAMPLED = 1000
RATES = (0.01, 0.001, 0.0)  # of false positives
DRAWN_RATES = 40  # points of a ROC
MEMORY = 2**22  # cases that are resampled at once
OUTSIDE = (1 - 0.95) / 2  # on each side of an interval

LEAKS = "leaks"
HARMLESS = f"no more than baseline + {MARGIN}"
UNKNOWN = "not measurable here"


@dataclass(frozen=True)
class Measured:
    """One figure with its interval; the last three are of rankings."""

    value: float
    low: float
    high: float
    n: int
    tpr: dict[str, float | None] | None = None  # by the rate of false positives; None: too few negatives for it
    advantage: float | None = None  # true minus false positive rate
    roc: tuple[tuple[float, float], ...] | None = None  # false and true positive rate, for an axis in decades


@dataclass(frozen=True)
class Comparison:
    """An attack beside its baselines, on the same cases."""

    attack: Measured
    baselines: dict[str, Measured]
    difference: tuple[float, float]  # interval of attack minus best baseline
    verdict: str

    @property
    def best(self) -> tuple[str, Measured]:
        """The baseline that is hardest to beat, and its name."""
        return max(self.baselines.items(), key=lambda one: one[1].value)

    def to_json(self) -> dict[str, object]:
        """All figures."""
        return {
            **asdict(self.attack),
            "baselines": {name: asdict(one) for name, one in self.baselines.items()},
            "difference": list(self.difference),
            "verdict": self.verdict,
        }


def decide(low: float, high: float, n: int) -> str:
    """The verdict on the interval of attack minus baseline."""
    if low > MARGIN:
        return LEAKS
    return HARMLESS if high <= MARGIN else f"{UNKNOWN} (n = {n})"


def compare_rankings(attack: Tensor, baselines: Mapping[str, Tensor], truth: Tensor, rng: Generator) -> Comparison:
    """Scores [n], higher for what is taken to be true, against `truth` [n]; all are resampled together."""
    scores = {"": attack, **baselines}
    resampled = _resampled_aucs(list(scores.values()), truth, rng)  # [RESAMPLED, scorers]
    half = torch.rand(len(truth), generator=rng) < 0.5
    found = {name: _ranking(one, truth, half, resampled[:, k]) for k, (name, one) in enumerate(scores.items())}
    names = list(baselines)
    best = 1 + max(range(len(names)), key=lambda k: found[names[k]].value)
    low, high = _interval(resampled[:, 0] - resampled[:, best])
    return Comparison(found.pop(""), found, (low, high), decide(low, high, len(truth)))


def compare_shares(attack: Tensor, baselines: Mapping[str, Tensor]) -> Comparison:
    """Which cases [n] each got right. The interval of the difference has the worst of both ends, so it is too wide."""
    hits, others = share(attack), {name: share(one) for name, one in baselines.items()}
    best = max(others.values(), key=lambda one: one.value)
    low, high = hits.low - best.high, hits.high - best.low
    return Comparison(hits, others, (low, high), decide(low, high, hits.n))


def share(right: Tensor) -> Measured:
    """Of the cases that are right."""
    count, n = int(right.sum()), len(right)
    interval = binomtest(count, n).proportion_ci(1 - 2 * OUTSIDE, method="exact")
    return Measured(count / n, float(interval.low), float(interval.high), n)


def auc(scores: Tensor, truth: Tensor) -> float:
    """The probability that a true case stands above a false one; a tie counts half."""
    true, false = torch.ones(1, int(truth.sum())), torch.ones(1, int((~truth).sum()))
    return float(_weighted_aucs(_groups(scores), truth, true.double(), false.double()))


def _groups(scores: Tensor) -> Tensor:
    """The place of each score among the different values, ascending."""
    places: Tensor = torch.unique(scores, return_inverse=True)[1]
    return places


def _weighted_aucs(groups: Tensor, truth: Tensor, true: Tensor, false: Tensor) -> Tensor:
    """For each row of weights of the true cases and of the false ones [rows, cases]."""
    size = int(groups.max()) + 1
    above, below = (
        torch.zeros(len(weight), size, dtype=weight.dtype).index_add_(1, groups[part], weight)
        for weight, part in ((true, truth), (false, ~truth))
    )
    below = below.cumsum(1) - below / 2
    areas: Tensor = (above * below).sum(1) / (true.sum(1) * false.sum(1))
    return areas


def _resampled_aucs(scores: list[Tensor], truth: Tensor, rng: Generator) -> Tensor:
    """Bootstrap (Efron 1979): true and false cases drawn with replacement, as many as there are of each."""
    groups, sizes = [_groups(one) for one in scores], (int(truth.sum()), int((~truth).sum()))
    at_once, found = max(1, MEMORY // len(truth)), list[Tensor]()
    for begin in range(0, RESAMPLED, at_once):
        rows = min(at_once, RESAMPLED - begin)
        true, false = (_drawn(rows, size, rng) for size in sizes)
        found.append(torch.stack([_weighted_aucs(one, truth, true, false) for one in groups], dim=1))
    return torch.cat(found)


def _drawn(rows: int, size: int, rng: Generator) -> Tensor:
    """How often each of so many cases was drawn [rows, size], as many draws as there are cases."""
    drawn = torch.randint(size, (rows, size), generator=rng)
    weights = torch.zeros(rows, size, dtype=torch.float64)
    return weights.scatter_add_(1, drawn, torch.ones_like(weights))


def _interval(resampled: Tensor) -> tuple[float, float]:
    low, high = torch.quantile(resampled, torch.tensor([OUTSIDE, 1 - OUTSIDE], dtype=torch.float64))
    return float(low), float(high)


def _ranking(scores: Tensor, truth: Tensor, half: Tensor, resampled: Tensor) -> Measured:
    """Thresholds from the cases in `half`, rates from the others."""
    false, n = scores[half & ~truth].sort(descending=True).values, len(truth)
    true, other = scores[~half & truth], scores[~half & ~truth]
    rates = dict[str, float | None]()
    for rate in RATES:
        allowed = int(rate * len(false))
        enough = len(false) > 0 and (allowed > 0 or rate == 0)
        rates[f"{rate:g}"] = float((true > false[allowed]).double().mean()) if enough else None
    best = _best_threshold(scores[half], truth[half])
    advantage = float((true > best).double().mean() - (other > best).double().mean())
    return Measured(auc(scores, truth), *_interval(resampled), n, rates, advantage, roc(scores, truth))


def roc(scores: Tensor, truth: Tensor) -> tuple[tuple[float, float], ...]:
    """False and true positive rate at thresholds whose false positives grow by equal factors, from none to all.

    Of ties the worst for the attack: a threshold lets all cases of one score through, or none.
    """
    size, groups = int(truth.numel()), _groups(scores)
    true, false = (torch.bincount(groups[part], minlength=int(groups.max()) + 1) for part in (truth, ~truth))
    found, missed = (part.flip(0).cumsum(0).double() for part in (true, false))
    negatives = float(missed[-1])
    allowed = torch.logspace(0, torch.log10(torch.tensor(max(negatives, 1.0))).item(), DRAWN_RATES).double()
    allowed = torch.tensor(sorted({0.0, *allowed.round().tolist()}), dtype=torch.float64)
    last = torch.searchsorted(missed, allowed, right=True) - 1  # of the groups that may be let through
    rates = torch.where(last < 0, 0.0, found[last.clamp_min(0)] / max(size - negatives, 1.0))
    return tuple(zip((allowed / max(negatives, 1.0)).tolist(), rates.tolist(), strict=True))


def _best_threshold(scores: Tensor, truth: Tensor) -> float:
    """Where true minus false positive rate is largest."""
    groups = _groups(scores)
    true, false = (torch.bincount(groups[part], minlength=int(groups.max()) + 1).double() for part in (truth, ~truth))
    gain = false.cumsum(0) / false.sum() - true.cumsum(0) / true.sum()  # what lies above is called true
    return float(torch.unique(scores)[int(gain.argmax())])
