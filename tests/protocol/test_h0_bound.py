"""Bounds with which h0 could leave the ring unnoticed are refused from public numbers; without that it does."""

import math

import pytest
import torch

from tests.protocol.joint import Run, agreement_of
from vfgnn import agreement as agreement_module
from vfgnn.errors import ConfigError, Overflow
from vfgnn.h0_bound import FAILURE, H0_BOUND, UNNOTICED, largest_feature_bound, weight_share_bound
from vfgnn.mpc.fixed_point import FixedPoint, weight_bits
from vfgnn.randomness import insecure_seed
from vfgnn.settings import Settings
from vfgnn.split.joint_layer import H0, draw_weight_share

HUGE = [torch.full((1, 1), 1e9), torch.full((1, 1), 1e9)]


def start(bound, seed):
    """H_0 of a federation of two holders with one column each, one node and width 1, and what it should be."""
    agreement = agreement_of(HUGE, [True, True], dim=1, feature_bound=bound, joint_layer="insecure_clear")
    shares = [draw_weight_share(agreement, insecure_seed(100 * seed + i)) for i in range(2)]
    expected = sum(float(x) * float(share[name]) for share in shares for name, x in zip(share, HUGE, strict=True))
    return Run(agreement, HUGE, seed=seed).go(0, None).h0["h0"][0].item(), expected


def test_without_the_check_one_start_in_four_is_wrong_and_nobody_hears_of_it(monkeypatch):
    """300 starts; those that end within H0_BOUND by chance pass: a quarter, as 2^12 of 2^14 do."""
    monkeypatch.setattr(agreement_module, "largest_feature_bound", lambda **_: math.inf)
    wrong = 0
    for seed in range(300):
        try:
            found, expected = start(1e9, seed)
        except Overflow:
            continue
        wrong += abs(found - expected) > 1
    assert abs(wrong - 75) < 38  # five deviations of a binomial with n = 300 and p = 1/4


def test_the_check_refuses_it_before_anything_starts():
    with pytest.raises(ConfigError, match="feature_bound = 1e") as refused:
        start(1e9, 0)
    assert refused.value.exit_code == 2
    limit = math.floor(largest_feature_bound(columns=2, dim=1, holders=2, nodes=1))
    assert f"feature_bound = {limit} or less" in str(refused.value)
    agreement_of(HUGE, [True, True], dim=1, feature_bound=limit)
    agreement_of(HUGE, [True, True], dim=1, feature_bound=1e9, initial_embedding="individual")  # no h0, no bound


@pytest.mark.parametrize(
    ("columns", "dim", "holders", "nodes"),
    [
        (1433, 128, 2, 2708),  # Cora
        (3703, 128, 2, 3327),  # CiteSeer
        (500, 128, 2, 19_717),  # PubMed
        (128, 256, 4, 169_343),  # ogbn-arxiv
        (20, 64, 3, 1_000_000),  # tables, with max_ids as the number of nodes
        (5000, 64, 2, 1_000_000),
        (1, 1, 2, 1),
    ],
)
def test_the_default_passes(columns, dim, holders, nodes):
    assert largest_feature_bound(columns=columns, dim=dim, holders=holders, nodes=nodes) >= Settings().feature_bound


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_few_columns_are_bounded_whatever_is_drawn(columns):
    """The worst W_0 and the worst row, in the ring: right, or seen to be too large."""
    holders, dim = 2, 1
    bound = math.floor(largest_feature_bound(columns=columns, dim=dim, holders=holders, nodes=1))
    share = weight_share_bound(columns, dim, holders)
    words = FixedPoint(weight_bits(0), 16.0).encode(torch.full((columns, holders), share), "shares")
    h0 = H0.decode(torch.full((1, columns), bound, dtype=torch.int64) @ words.sum(dim=1, keepdim=True)).item()
    true = bound * columns * holders * share
    assert true < UNNOTICED
    assert abs(h0) > H0_BOUND or h0 == pytest.approx(true)


def test_many_columns_are_bounded_but_for_the_stated_probability():
    """The normal tail lies below the one that was charged: the variance is the true one, and W_0 is nearly normal."""
    columns, dim, holders, nodes = 3703, 128, 2, 3327
    bound = largest_feature_bound(columns=columns, dim=dim, holders=holders, nodes=nodes)
    drawn = draw_weight_share(agreement_of([torch.zeros(1, 3000)] * 2, [True, True], dim=64), insecure_seed(0))
    variance = weight_share_bound(6000, 64, 2) ** 2 / 3
    assert float(torch.cat(list(drawn.values())).var()) == pytest.approx(variance, rel=0.02)  # 384,000 values
    deviation = bound * math.sqrt(2 * columns / (columns + dim))
    assert nodes * dim * math.erfc(UNNOTICED / deviation / math.sqrt(2)) < FAILURE
