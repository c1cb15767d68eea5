"""Randomised response on edges and labels: exact rates, exact epsilon."""

import math

import pytest
import torch
from scipy import stats

from vfgnn.errors import DataError
from vfgnn.privacy.input_perturbation import (
    edge_meaning,
    edges_of,
    flip_labels,
    flip_pairs,
    flip_probability,
    keep_probability,
    pair_count,
    pairs_of,
)
from vfgnn.randomness import Stream, insecure_seed


def stream(number=0):
    return Stream(insecure_seed(number), "input perturbation")


def test_pairs_and_edges_are_the_same_thing():
    edge_index = torch.tensor([[0, 1, 4, 4, 2, 3, 3], [1, 0, 2, 2, 4, 3, 0]])  # both ways, repeated, a loop
    pairs = pairs_of(edge_index)
    assert pairs.tolist() == [0, 3, 8]
    assert torch.equal(pairs_of(edges_of(pairs)), pairs)
    everything = torch.arange(pair_count(300))
    ends = edges_of(everything)
    assert torch.equal(pairs_of(ends), everything) and int(ends.max()) == 299


def test_pairs_of_millions_of_nodes_are_exact():
    last = pair_count(20_000_000) - 1
    for pair in (0, 1, last - 1, last):
        low, high = edges_of(torch.tensor([pair]))[:, 0].tolist()
        assert high * (high - 1) // 2 + low == pair and 0 <= low < high < 20_000_000


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_flip_rates(epsilon):
    nodes = 2000
    true = torch.unique(torch.randint(pair_count(nodes), (40_000,), generator=torch.Generator().manual_seed(1)))
    noised = flip_pairs(true, nodes, epsilon, stream(), most=10**7)
    assert torch.equal(noised, torch.unique(noised)) and int(noised.max()) < pair_count(nodes)
    kept = int(torch.isin(noised, true).sum())
    flip = 1 / (1 + math.exp(epsilon))
    assert stats.binomtest(kept, len(true), 1 - flip).pvalue > 1e-4
    assert stats.binomtest(len(noised) - kept, pair_count(nodes) - len(true), flip).pvalue > 1e-4


def test_epsilon_is_exact():
    """The likelihood ratio of a pair's answer under "edge" and "no edge" is e^epsilon either way."""
    for epsilon in (0.1, 1.0, 8.0):
        flip = flip_probability(epsilon)
        assert math.log((1 - flip) / flip) == pytest.approx(epsilon, rel=1e-12)


def test_flips_are_independent_of_each_other_and_of_the_edges():
    """No pair, near or far, is flipped more often than another: 400 draws over 190 pairs."""
    nodes, epsilon, draws = 20, 1.0, 400
    true = torch.arange(0, pair_count(nodes), 3)
    said = torch.zeros(draws, pair_count(nodes))
    for draw in range(draws):
        said[draw, flip_pairs(true, nodes, epsilon, stream(draw), most=10**6)] = 1.0
    truth = torch.zeros(pair_count(nodes))
    truth[true] = 1.0
    lies = (said != truth).double()
    expected = draws * flip_probability(epsilon)
    assert (
        stats.chisquare(lies.sum(0).numpy(), [lies.sum().item() / pair_count(nodes)] * pair_count(nodes)).pvalue > 1e-4
    )
    assert abs(lies.sum(0).mean().item() - expected) < 5 * math.sqrt(expected / pair_count(nodes))
    neighbours = torch.corrcoef(torch.stack([lies[:, :-1].reshape(-1), lies[:, 1:].reshape(-1)]))[0, 1]
    assert abs(float(neighbours)) < 5 / math.sqrt(lies.numel())


def test_a_list_that_would_be_too_long_is_refused():
    with pytest.raises(DataError, match="too long"):
        flip_pairs(torch.empty(0, dtype=torch.int64), 1_000_000, 1.0, stream(), most=10**7)


def test_what_epsilon_eight_means_on_cora():
    kept, real = edge_meaning(2708, 5278 // 2, 8.0)
    assert kept == pytest.approx(0.9997, abs=5e-5)
    assert real == pytest.approx(0.68, abs=0.005)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_labels(epsilon):
    classes, count = 7, 200_000
    y = torch.arange(count) % classes
    noised = flip_labels(y, classes, epsilon, stream())
    kept = int((noised == y).sum())
    assert stats.binomtest(kept, count, keep_probability(epsilon, classes)).pvalue > 1e-4
    lies = ((noised - y) % classes)[noised != y]
    assert stats.chisquare(torch.bincount(lies, minlength=classes)[1:].numpy()).pvalue > 1e-4
    other = (1 - keep_probability(epsilon, classes)) / (classes - 1)
    assert math.log(keep_probability(epsilon, classes) / other) == pytest.approx(epsilon, rel=1e-12)


def test_a_huge_epsilon_changes_nothing():
    y, pairs = torch.arange(100) % 3, torch.arange(0, 1000, 7)
    assert torch.equal(flip_labels(y, 3, 60.0, stream()), y)
    assert torch.equal(flip_pairs(pairs, 100, 60.0, stream(), most=10**6), pairs)
