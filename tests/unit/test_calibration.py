"""Noise and epsilon against the exact formula, dp-accounting, and the figures of the literature."""

import math

import dp_accounting
import pytest
from dp_accounting import pld
from scipy.stats import norm

from vfgnn.errors import ConfigError
from vfgnn.privacy import calibration
from vfgnn.privacy.calibration import analytic_multiplier, classical_multiplier, delta_of, epsilon_of

DELTA = 1e-4
CLASSICAL = {1: 4.3436, 2: 2.1718, 4: 1.0859, 8: 0.54295, 16: 0.27148, 32: 0.13574, 64: 0.06787}
ANALYTIC = {1: 3.1857, 2: 1.7344, 4: 0.9587, 8: 0.54308, 16: 0.31775, 32: 0.19276, 64: 0.12108}


@pytest.mark.parametrize("epsilon", CLASSICAL)
def test_multipliers_are_the_known_ones(epsilon):
    assert classical_multiplier(epsilon, DELTA) == pytest.approx(CLASSICAL[epsilon], rel=2e-5)
    assert analytic_multiplier(epsilon, DELTA) == pytest.approx(ANALYTIC[epsilon], rel=3e-5)


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0, 64.0])
def test_the_exact_formula_holds_with_hardly_anything_to_spare(epsilon, delta):
    m = analytic_multiplier(epsilon, delta)
    written_out = norm.cdf(0.5 / m - epsilon * m) - math.exp(epsilon) * norm.cdf(-0.5 / m - epsilon * m)
    assert written_out <= delta * (1 + 1e-9)
    assert delta_of(epsilon, m * (1 - 1e-4)) > delta  # any less noise would not do


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0, 40.0])
def test_inverse_pairs(epsilon):
    assert epsilon_of(analytic_multiplier(epsilon, DELTA), DELTA) == pytest.approx(epsilon, rel=1e-6)
    multiplier = 0.7
    assert analytic_multiplier(epsilon_of(multiplier, DELTA), DELTA) == pytest.approx(multiplier, rel=1e-6)
    together = calibration.noise_multiplier(epsilon, DELTA, "analytic", releases=50)
    assert epsilon_of(together, DELTA, 50) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("multiplier", "releases"), [(3.0, 1), (1.0, 1), (5.0, 20)])
def test_dp_accounting_agrees(multiplier, releases):
    accountant = pld.PLDAccountant(value_discretization_interval=1e-5)
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier), releases)
    theirs, ours = accountant.get_epsilon(DELTA), epsilon_of(multiplier, DELTA, releases)
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_the_safe_side():
    for epsilon in (0.5, 3.0, 20.0):
        assert delta_of(epsilon, analytic_multiplier(epsilon, DELTA)) <= DELTA
    for multiplier in (0.2, 1.0, 10.0):
        assert delta_of(epsilon_of(multiplier, DELTA, 7), multiplier, 7) <= DELTA


def test_two_hundred_releases_at_eight_are_four_hundred_and_thirty_five():
    assert epsilon_of(analytic_multiplier(8, DELTA), DELTA, 200) == pytest.approx(435.0, rel=1e-3)


def test_the_classical_formula_promises_too_much_from_eight_on():
    assert epsilon_of(classical_multiplier(4, DELTA), DELTA) < 4
    assert epsilon_of(classical_multiplier(64, DELTA), DELTA) > 64


def test_what_a_budget_affords():
    m = analytic_multiplier(8, DELTA)
    assert calibration.affordable(m, DELTA, epsilon_of(m, DELTA, 200)) == 200
    assert calibration.affordable(m, DELTA, 8.0) == 1
    assert calibration.affordable(m, DELTA, 7.0) == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_no_epsilon(epsilon):
    with pytest.raises(ConfigError, match="epsilon cannot be used"):
        analytic_multiplier(epsilon, DELTA)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0])
def test_no_delta(delta):
    with pytest.raises(ConfigError, match="delta cannot be used"):
        analytic_multiplier(1.0, delta)


def test_delta_is_below_one_over_n():
    calibration.check_delta(3.6e-4, nodes=2708)
    with pytest.raises(ConfigError, match="delta is too large"):
        calibration.check_delta(3.7e-4, nodes=2708)


def test_sensitivity():
    assert calibration.sensitivity(2.0, "zero_out") == 2.0
    assert calibration.sensitivity(2.0, "replace_one") == 4.0
