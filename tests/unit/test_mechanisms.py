"""Clipping, the noise that is really drawn, shrinking; and an attack that must not find more than was promised."""

import math

import pytest
import torch
from scipy import stats

from vfgnn.errors import ConfigError
from vfgnn.privacy.calibration import analytic_multiplier
from vfgnn.privacy.mechanisms import GRID, GaussianMechanism, clip, gaussian, shrink
from vfgnn.randomness import Stream, insecure_seed, new_seed


def insecure_stream(number=0):
    return Stream(insecure_seed(number), "noise")


def test_clipping_shortens_what_is_long_and_leaves_the_rest():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert torch.allclose(clip(rows, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]).double())


@pytest.mark.parametrize("std", [0.05, 1.0, 8.0])
def test_the_noise_is_gaussian_with_the_right_variance(std):
    noise = gaussian(insecure_stream(), (200_000,), std).double().numpy() / GRID
    assert stats.kstest(noise / std, "norm").pvalue > 1e-3
    low, high = (stats.chi2.ppf(p, len(noise) - 1) / (len(noise) - 1) for p in (1e-4, 1 - 1e-4))
    assert low < noise.var(ddof=1) / std**2 < high
    assert abs(noise.mean()) < 5 * std / math.sqrt(len(noise))


def test_the_tail_is_there():
    noise = gaussian(insecure_stream(1), (2_000_000,), 1.0).double() / GRID
    beyond = int((noise.abs() > 4.0).sum())
    assert stats.binomtest(beyond, len(noise), 2 * stats.norm.sf(4.0)).pvalue > 1e-4


def test_noise_comes_from_the_operating_system_and_differs_between_runs():
    mechanism, rows = GaussianMechanism(1.0, 1.0, "zero_out"), torch.zeros(50, 8)
    one, other = (mechanism.release(rows, Stream(new_seed(), "noise")) for _ in range(2))
    assert not torch.equal(one, other)
    assert len(torch.unique(torch.cat([one, other]))) > 700


def test_every_bit_of_what_leaves_is_on_the_grid():
    rows = torch.randn(100, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    words = GaussianMechanism(1.0, 0.5, "zero_out").release(rows, insecure_stream()) * GRID
    assert torch.equal(words, words.round())


def test_a_row_on_the_grid_is_never_longer_than_the_clip_norm():
    mechanism = GaussianMechanism(1.0, 1e-12, "zero_out")  # noise far below the grid
    rows = 10 * torch.randn(1000, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert float(mechanism.release(rows, insecure_stream()).norm(dim=1).max()) <= 1.0


def test_replace_one_has_twice_the_noise():
    assert GaussianMechanism(2.0, 0.5, "zero_out").std == 1.0
    assert GaussianMechanism(2.0, 0.5, "replace_one").std == 2.0


def test_shrinking():
    x, std = torch.tensor([[1.0, 2.0, 2.0, 4.0]]).double(), 0.5  # |x|^2 = 25, d = 4
    assert torch.allclose(shrink(x, "james_stein", std=std, clip_norm=1.0), x * (1 - 2 * 0.25 / 25))
    assert torch.allclose(shrink(x, "known_norm", std=std, clip_norm=1.0), x / 2)
    small = torch.tensor([[0.1, 0.1, 0.1, 0.1]]).double()
    assert float(shrink(small, "james_stein", std=std, clip_norm=1.0)[0, 0]) < 0  # as printed: through zero
    assert torch.equal(shrink(small, "james_stein_positive", std=std, clip_norm=1.0), torch.zeros(1, 4).double())
    assert torch.equal(shrink(torch.zeros(1, 4), "james_stein_positive", std=std, clip_norm=1.0), torch.zeros(1, 4))
    with pytest.raises(ConfigError, match="three dimensions"):
        shrink(torch.ones(1, 2), "james_stein", std=std, clip_norm=1.0)


def test_james_stein_reduces_the_error_of_noised_rows():
    rows = torch.nn.functional.normalize(torch.randn(4000, 64, generator=torch.Generator().manual_seed(2)))
    for how in ("james_stein", "james_stein_positive", "known_norm"):
        plain = GaussianMechanism(1.0, 0.3, "zero_out").release(rows, insecure_stream(3))
        shrunk = GaussianMechanism(1.0, 0.3, "zero_out", how).release(rows, insecure_stream(3))
        assert (shrunk - rows).square().mean() < 0.3 * (plain - rows).square().mean()


def epsilon_that_an_attack_proves(std, delta, *, rows=300_000):
    """A lower bound on epsilon, with 99.9 % confidence, from telling a full row from a zeroed one.

    The attacker sees one noised row and says "full" where its projection on the row is large; whoever is right more
    often than (epsilon, delta) allows has refuted it.
    """
    full = torch.zeros(rows, 3)
    full[:, 0] = 1.0
    mechanism = GaussianMechanism(1.0, std, "zero_out")
    there = mechanism.release(full, Stream(new_seed(), "noise"))[:, 0]
    zeroed = mechanism.release(torch.zeros(rows, 3), Stream(new_seed(), "noise"))[:, 0]
    best = 0.0
    for threshold in (2.0, 2.5, 3.0):  # fixed beforehand, in deviations
        hits, alarms = int((there > threshold * std).sum()), int((zeroed > threshold * std).sum())
        least_hits = stats.beta.ppf(1e-3 / 6, hits, rows - hits + 1)
        most_alarms = stats.beta.ppf(1 - 1e-3 / 6, alarms + 1, rows - alarms)
        if least_hits > delta:
            best = max(best, math.log((least_hits - delta) / most_alarms))
    return best


def test_an_attack_proves_no_more_than_the_claimed_epsilon():
    claimed, delta = 1.0, 1e-4
    proved = epsilon_that_an_attack_proves(analytic_multiplier(claimed, delta), delta)
    assert 0.5 < proved < claimed  # and the attack is a good one


def test_the_same_attack_finds_halved_noise():
    """The test above can fail: with half the noise the attack proves more than was claimed."""
    claimed, delta = 1.0, 1e-4
    assert epsilon_that_an_attack_proves(analytic_multiplier(claimed, delta) / 2, delta) > claimed


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_a_row_that_is_not_finite_shows_no_more_than_any_other(value):
    rows = torch.zeros(1000, 4, dtype=torch.float64)
    rows[0, 0] = value
    released = GaussianMechanism(1.0, 1.0, "zero_out").release(rows, insecure_stream())
    assert bool(torch.isfinite(released).all()) and float(released.abs().max()) < 10
