"""How much noise an epsilon asks for, and what epsilon a noise gives: the Gaussian mechanism, exactly.

Pure numbers; nothing private goes in. A `noise_multiplier` is the noise's standard deviation over the sensitivity.
Every figure is rounded to the safe side: a multiplier up, an epsilon up.

`analytic` is exact for every epsilon (Balle and Wang, 2018: the mechanism is (epsilon, delta)-DP exactly when
Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) <= delta, with mu = 1 / noise_multiplier). T releases of one
row are one release with mu sqrt(T). `classical` is the paper's sqrt(2 ln(1.25/delta)) / epsilon, which is proved for
epsilon < 1 and gives less than it says above about 8 at delta = 1e-4: for reproduction only.
"""

import math
from typing import Literal

from scipy.optimize import brentq
from scipy.special import log_ndtr

from vfgnn.errors import ConfigError

Adjacency = Literal["zero_out", "replace_one"]
Calibration = Literal["analytic", "classical"]
SAFE = 1e-9  # relative: far above what the root finder leaves open, far below anything that matters


def sensitivity(clip_norm: float, adjacency: Adjacency) -> float:
    """How far one row can move: to zero, or to any other row."""
    return clip_norm if adjacency == "zero_out" else 2 * clip_norm


def check_epsilon(epsilon: float, what: str = "epsilon") -> None:
    """Refuse what is no privacy parameter."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"{what} cannot be used", expected="a finite number above 0", got=str(epsilon))


def check_delta(delta: float, nodes: int | None = None) -> None:
    """Refuse a delta that would allow giving away some rows whole."""
    if not 0 < delta < 1:
        raise ConfigError("delta cannot be used", expected="a number between 0 and 1", got=str(delta))
    if nodes is not None and delta >= 1 / nodes:
        raise ConfigError(
            "delta is too large",
            expected=f"less than 1/n = {1 / nodes:.3g} for {nodes} nodes",
            got=f"{delta:g}",
            hint="with delta >= 1/n a mechanism may give away a row that it picks at random",
        )


def delta_of(epsilon: float, noise_multiplier: float, releases: int = 1) -> float:
    """The exact delta of `releases` Gaussian releases of one row at `epsilon`."""
    mu = math.sqrt(releases) / noise_multiplier
    kept = math.exp(float(log_ndtr(mu / 2 - epsilon / mu)))
    return max(0.0, kept - math.exp(min(0.0, epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)))))


def epsilon_of(noise_multiplier: float, delta: float, releases: int = 1) -> float:
    """The exact total epsilon of `releases` Gaussian releases of one row, at `delta`."""
    check_delta(delta)
    if releases == 0 or delta_of(0.0, noise_multiplier, releases) <= delta:
        return 0.0
    mu = math.sqrt(releases) / noise_multiplier
    highest = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1  # by the tail of the privacy loss
    root = float(brentq(lambda e: delta_of(e, noise_multiplier, releases) - delta, 0.0, highest, xtol=1e-13 * highest))
    return root * (1 + SAFE)


def analytic_multiplier(epsilon: float, delta: float) -> float:
    """The smallest noise multiplier whose one release is (epsilon, delta)-DP."""
    check_epsilon(epsilon)
    check_delta(delta)
    low, high = math.log(1e-6), math.log(1e9)

    def excess(log_multiplier: float) -> float:
        return delta_of(epsilon, math.exp(log_multiplier)) - delta

    if excess(low) <= 0 or excess(high) > 0:
        raise ConfigError("epsilon and delta out of range", expected="a noise multiplier from 1e-6 to 1e9")
    return math.exp(float(brentq(excess, low, high, xtol=1e-13))) * (1 + SAFE)


def classical_multiplier(epsilon: float, delta: float) -> float:
    """The paper's sigma (its Definition 2)."""
    check_epsilon(epsilon)
    check_delta(delta)
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def noise_multiplier(epsilon: float, delta: float, calibration: Calibration, *, releases: int = 1) -> float:
    """Noise for each of `releases` releases that cost `epsilon` together."""
    one = analytic_multiplier if calibration == "analytic" else classical_multiplier
    return one(epsilon, delta) * math.sqrt(releases)


def affordable(noise_multiplier: float, delta: float, budget_epsilon: float) -> int:
    """How many releases of one row stay within a budget."""
    one = analytic_multiplier(budget_epsilon, delta)  # the multiplier of all of them together
    count = math.floor((noise_multiplier / one) ** 2 * (1 + 4 * SAFE))
    while count and epsilon_of(noise_multiplier, delta, count) > budget_epsilon * (1 + 4 * SAFE):
        count -= 1
    return count
