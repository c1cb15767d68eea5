"""A mechanism of a holder's own: what it is given, what its releases add up to, and what is refused."""

import math

import pytest
import torch

import vfgnn
from tests.own_code import DiscreteLaplace
from vfgnn.errors import BudgetSpent, ModuleError
from vfgnn.privacy.calibration import analytic_multiplier
from vfgnn.privacy.ledger import ALL, Ledger, Release, total_epsilon
from vfgnn.privacy.mechanisms import gaussian
from vfgnn.privacy.publishing import Publisher, own_row_mechanism
from vfgnn.randomness import Stream, insecure_seed
from vfgnn.settings import Privacy

PRIVACY = Privacy(row_epsilon=2.0, delta=1e-5)
DIM, EPOCHS = 6, 4


def usable(own, privacy=PRIVACY):
    return own_row_mechanism(own, privacy, EPOCHS, DIM)


def claiming(noised, **cost):
    class Made(vfgnn.RowMechanism):
        @property
        def cost(self):
            return vfgnn.Cost(**cost)

        def noise(self, rows, stream):
            return noised(rows, stream)

    return Made


def honest(rows, stream):
    return rows + gaussian(stream, tuple(rows.shape), 100.0).double() / 2.0**24


def publisher(own, privacy=PRIVACY, ledger=None):
    return Publisher(
        privacy, epochs=EPOCHS, run="r", seed=insecure_seed(0), ledger=ledger or Ledger(), rows=usable(own, privacy)
    )


def test_it_is_given_clipped_rows_and_every_release_is_charged():
    seen = []
    made = publisher(claiming(lambda rows, stream: seen.append(rows) or honest(rows, stream), epsilon=1.5))
    seen.clear()
    rows = torch.tensor([[3.0, 4.0, 0, 0, 0, 0], [0.1, 0, 0, 0, 0, 0], [math.nan, 0, 0, 0, 0, 0]])
    noised = made.rows(rows, ("train",), 7, nodes=torch.arange(3))
    assert noised.dtype == torch.float32 and noised.shape == rows.shape
    expected = torch.tensor([[0.6, 0.8, 0, 0, 0, 0], [0.1, 0, 0, 0, 0, 0], [0.0] * 6], dtype=torch.float64)
    assert torch.allclose(seen[0], expected, atol=1e-7)  # 0.1 as float32
    charged = Release("r", 7, "rows", "row", ("train",), adjacency="zero_out", epsilon=1.5, categories=2)
    assert made.ledger.releases == [charged]


def test_what_leaves_is_on_the_grid():
    noised = usable(DiscreteLaplace).release(torch.rand(5, DIM).double(), Stream(insecure_seed(1), "noise"))
    assert torch.equal(noised * 2.0**24, (noised * 2.0**24).round())


def test_a_gaussian_of_ones_own_adds_up_as_ours_does():
    multiplier = analytic_multiplier(2.0, 1e-5)
    made = publisher(claiming(honest, noise_multiplier=multiplier))
    for step in range(3):
        made.rows(torch.rand(2, DIM), (ALL,), step, nodes=torch.arange(2))
    ours = [Release("r", None, "rows", "row", (ALL,), "zero_out", noise_multiplier=multiplier)] * 3
    assert total_epsilon(made.ledger.releases, 1e-5, "zero_out") == total_epsilon(ours, 1e-5, "zero_out")


def test_pure_epsilons_add_up_to_no_more_than_their_sum_and_double_for_any_other_row():
    line = Release("r", None, "rows", "row", (ALL,), adjacency="zero_out", epsilon=0.1, categories=2)
    assert total_epsilon([line], 1e-5, "zero_out") == 0.1
    assert total_epsilon([line], 1e-5, "replace_one") == 0.2
    assert 0.1 < total_epsilon([line] * 200, 1e-5, "zero_out") < 200 * 0.1
    # delta of k-fold randomised response at epsilon e: P(S > e) - ..., never below what one release costs
    assert total_epsilon([line] * 200, 1e-5, "replace_one") > total_epsilon([line] * 200, 1e-5, "zero_out")


def test_totals_of_pure_epsilons_are_those_of_the_optimal_composition_theorem():
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3: at ((k - 2 i) eps) the delta of k releases is known exactly."""
    k, i, epsilon = 30, 10, 0.5
    delta = (
        sum(math.comb(k, m) * (math.exp((k - m) * epsilon) - math.exp((k - 2 * i + m) * epsilon)) for m in range(i))
        / (1 + math.exp(epsilon)) ** k
    )
    lines = [Release("r", None, "rows", "row", (ALL,), adjacency="zero_out", epsilon=epsilon, categories=2)] * k
    # dp-accounting rounds losses up on a grid of 1e-4: at most that much for each release
    assert (k - 2 * i) * epsilon <= total_epsilon(lines, delta, "zero_out") <= (k - 2 * i) * epsilon + k * 1e-4


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (claiming(honest), "cannot be computed"),
        (claiming(honest, epsilon=1.0, noise_multiplier=1.0), "cannot be computed"),
        (claiming(honest, epsilon=math.inf), "cannot be computed"),
        (claiming(honest, noise_multiplier=0.0), "cannot be computed"),
        (lambda privacy, dim: object(), "cannot be computed"),
        (claiming(honest, epsilon=2.1), "more than the federation agreed on"),
        (claiming(honest, noise_multiplier=analytic_multiplier(2.1, 1e-5)), "more than the federation agreed on"),
        (claiming(lambda rows, stream: rows, epsilon=1.0), "adds no noise"),
        (claiming(lambda rows, stream: rows + torch.rand(rows.shape), epsilon=1.0), "draw from the stream"),
        (claiming(lambda rows, stream: rows[1:], epsilon=1.0), "one row of finite numbers"),
        (claiming(lambda rows, stream: rows / 0, epsilon=1.0), "one row of finite numbers"),
    ],
)
def test_what_cannot_be_accounted_for_is_refused(own, said):
    with pytest.raises(ModuleError, match=said):
        usable(own)


def test_settings_that_it_would_not_keep_are_refused():
    with pytest.raises(ModuleError, match="not for these settings"):
        usable(DiscreteLaplace, Privacy())
    with pytest.raises(ModuleError, match="not for these settings"):
        usable(DiscreteLaplace, Privacy(row_epsilon=2.0, shrink="known_norm"))


def test_an_epsilon_for_the_whole_run_is_for_all_its_releases():
    of_run = Privacy(row_epsilon=2.0, delta=1e-5, per="run")
    with pytest.raises(ModuleError, match=r"5 release\(s\)"):
        usable(DiscreteLaplace, of_run)
    assert usable(claiming(honest, epsilon=2.0 / (EPOCHS + 1)), of_run).cost.epsilon == 0.4


def test_a_budget_that_it_would_break_is_refused_before_the_run():
    budgeted = Privacy(row_epsilon=2.0, delta=1e-5, budget_epsilon=4.0)
    made = publisher(claiming(honest, epsilon=2.0), budgeted)
    with pytest.raises(BudgetSpent):
        made.refuse_spent()
