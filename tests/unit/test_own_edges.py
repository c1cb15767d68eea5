"""A holder's own edges: both directions, no self-loops, no duplicates, and never more of a node than its quota."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.sealed_twin import settings_of, small
from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError
from vfgnn.lab.scenario import agreement_of
from vfgnn.sealed.own_edges import entries_of, proposed_bound, refuse_unusable

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


def index(pairs):
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()


@given(PAIRS)
def test_entries_are_those_of_a_symmetric_binary_matrix(pairs):
    expected = {(a, b) for a, b in pairs if a != b} | {(b, a) for a, b in pairs if a != b}
    found = entries_of(index(pairs), 8, quota=8)
    assert found.t().tolist() == sorted(map(list, expected))


@given(PAIRS, st.integers(1, 4))
def test_no_node_has_more_than_its_quota(pairs, quota):
    everything = {tuple(pair) for pair in entries_of(index(pairs), 8, quota=8).t().tolist()}
    kept = {tuple(pair) for pair in entries_of(index(pairs), 8, quota=quota).t().tolist()}
    assert kept <= everything
    assert kept == {(b, a) for a, b in kept}
    assert all(sum(a == node for a, _ in kept) <= quota for node in range(8))
    crowded = {node for node in range(8) if sum(a == node for a, _ in everything) > quota}
    assert all({a, b} & crowded for a, b in everything - kept)  # nothing is dropped without need


@pytest.mark.parametrize("holders", [2, 3, 5])
@pytest.mark.parametrize("bits", [4, 8])
def test_the_sum_of_all_quotas_stays_in_the_table(holders, bits):
    """Also with the node itself, which smooth counts."""
    held, labels = small(holders)
    quota = agreement_of(held, labels, settings_of(degree_bits=bits)).degree_quota
    assert quota * holders + 1 <= 2**bits - 1 < (quota + 1) * holders + 2


@given(st.integers(0, 10**7))
def test_the_proposed_bound_is_enough_and_tells_little(entries):
    bound = proposed_bound(entries)
    assert entries <= bound <= max(16 * (entries > 0), 9 * entries / 8)
    assert bin(bound).rstrip("0").count("1") <= 4
    assert len(bin(bound).removeprefix("0b").rstrip("0")) <= 4


def test_what_has_no_place_is_refused():
    x = torch.zeros(4, 1)
    edges = index([(0, 1)])
    with pytest.raises(ConfigError, match="weights"):
        refuse_unusable(Holding(x=x, edge_index=edges, edge_weight=torch.ones(1)))
    with pytest.raises(ConfigError, match="local neighbours"):
        refuse_unusable(Holding(x=x, edge_index=edges, local=1))
