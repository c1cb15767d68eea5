import pytest
import torch
from sklearn.metrics import roc_auc_score

from vfgnn.audit.edges import cosines, drawn_pairs
from vfgnn.audit.statistics import HARMLESS, LEAKS, UNKNOWN, auc, compare_rankings, compare_shares, decide, roc, share
from vfgnn.data.holdings import Holding


def drawn(n=4000, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=rng) < 0.4, torch.randn(n, generator=rng), rng


def test_auc_equals_an_independent_implementation_also_with_ties():
    truth, noise, _ = drawn()
    for scores in (noise + truth, (noise + truth).round(), torch.zeros(len(truth))):
        assert auc(scores, truth) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)


def test_a_planted_leak_is_found_and_independent_noise_is_not():
    truth, noise, rng = drawn()
    flat = torch.zeros(len(truth))
    planted = compare_rankings(noise + 2 * truth, {"nothing": flat, "noise": noise}, truth, rng)
    assert planted.verdict == LEAKS
    assert planted.attack.low < planted.attack.value < planted.attack.high
    assert planted.attack.advantage > 0.5
    # 40 % of half of the cases are true, so a rate has a deviation of at most sqrt(.25 / 800) = .018
    assert planted.attack.tpr["0.01"] == pytest.approx(0.37, abs=0.1)  # P(noise > 2.33 - 2) = .37
    independent = compare_rankings(noise, {"nothing": flat}, truth, rng)
    assert independent.verdict != LEAKS
    assert abs(independent.attack.advantage) < 0.1


def test_a_verdict_needs_the_interval():
    truth, noise, rng = drawn(n=30)
    few = compare_rankings(noise + 0.8 * truth, {"nothing": torch.zeros(len(truth))}, truth, rng)
    assert few.attack.value > 0.52
    assert few.verdict == f"{UNKNOWN} (n = 30)"
    assert (decide(0.021, 0.5, 9), decide(-0.1, 0.02, 9)) == (LEAKS, HARMLESS)


def test_rates_that_need_more_negatives_are_not_given():
    truth, noise, rng = drawn(n=200)
    found = compare_rankings(noise, {"nothing": noise}, truth, rng).attack.tpr
    assert found["0.001"] is None
    assert found["0"] is not None


def test_shares_have_an_exact_interval():
    found = share(torch.ones(10, dtype=torch.bool))
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025 ** (1 / 10))  # Clopper-Pearson with no failure
    right = torch.arange(1000) < 900
    assert compare_shares(right, {"guess": ~right}).verdict == LEAKS
    assert compare_shares(~right, {"guess": right}).verdict == HARMLESS


def test_pairs_are_all_edges_once_and_as_many_others():
    edges = torch.tensor([[0, 1, 1, 2, 3, 3, 5, 6], [1, 0, 2, 1, 3, 4, 6, 7]])
    every = {(0, 1), (1, 2), (3, 4), (5, 6), (6, 7)}
    pairs, truth = drawn_pairs(Holding(torch.zeros(50, 1), edges), torch.Generator().manual_seed(0))
    assert sorted(map(tuple, pairs[:, truth].t().tolist())) == sorted(every)
    assert int((~truth).sum()) == len(every)
    assert not every & set(map(tuple, pairs[:, ~truth].t().tolist()))
    assert cosines(torch.eye(50), pairs).abs().max() == 0


def test_roc_counts_cases_above_a_threshold():
    scores, truth = torch.tensor([4.0, 3, 2, 1, 0]), torch.tensor([True, False, True, False, False])
    assert roc(scores, truth) == ((0.0, 0.5), (1 / 3, 1.0), (2 / 3, 1.0), (1.0, 1.0))
    tied = roc(torch.zeros(5), truth)
    assert tied[0] == (0.0, 0.0)
    assert tied[-1] == (1.0, 1.0)
