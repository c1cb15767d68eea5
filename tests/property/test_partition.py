"""Nothing lost, for any graph, any number of holders and any proportions; nothing twice, but for edges by direction."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgnn.data.partition import check_proportions, holder_names, partition
from vfgnn.errors import ConfigError


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 12))
    features = draw(st.integers(0, 9))
    count = draw(st.integers(0, 30))
    ends = draw(st.lists(st.integers(0, nodes - 1), min_size=2 * count, max_size=2 * count))
    edge_index = torch.tensor(ends, dtype=torch.int64).reshape(2, count)
    if draw(st.booleans()):
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    x = torch.arange(float(nodes * features)).reshape(nodes, features)  # every column is different
    return x, edge_index


@st.composite
def shares(draw, holders):
    weights = draw(st.lists(st.integers(0, 9), min_size=holders, max_size=holders).filter(any))
    return [weight / sum(weights) for weight in weights]


def entries(edge_index):
    return sorted(map(tuple, edge_index.t().tolist()))


@settings(max_examples=200, deadline=None)
@given(st.data(), graphs(), st.integers(1, 5), st.sampled_from(["undirected", "directed"]), st.integers(0, 99))
def test_nothing_lost_nothing_twice(data, graph, holders, edge_split, seed):
    x, edge_index = graph
    parts = partition(
        x,
        edge_index,
        holders=holders,
        seed=seed,
        proportions=data.draw(shares(holders)),
        edge_proportions=data.draw(shares(holders)),
        edge_split=edge_split,
    )
    columns = torch.cat([part.x for part in parts], dim=1)
    assert sorted(map(tuple, columns.t().tolist())) == sorted(map(tuple, x.t().tolist()))
    owned = [{frozenset(edge) for edge in entries(part.edge_index)} for part in parts]
    assert set().union(*owned) == {frozenset(edge) for edge in entries(edge_index)}
    if edge_split == "undirected":
        assert entries(torch.cat([part.edge_index for part in parts], dim=1)) == entries(edge_index)
        assert sum(map(len, owned)) == len(set().union(*owned))
    for part, mine in zip(parts, owned, strict=True):  # all entries of an edge, or none
        assert entries(part.edge_index) == [entry for entry in entries(edge_index) if frozenset(entry) in mine]


def test_by_direction_each_of_two_holders_knows_three_quarters_of_the_edges():
    """Of each edge's two entries both go to the other holder with probability 1/4; so half are known to both."""
    edges = 10_000
    ends = torch.stack([torch.arange(edges), torch.arange(edges) + edges])
    both = torch.cat([ends, ends.flip(0)], dim=1)
    parts = partition(torch.ones(2 * edges, 2), both, holders=2, seed=0, edge_split="directed")
    known = [{frozenset(edge) for edge in entries(part.edge_index)} for part in parts]
    # A share of 10,000 edges deviates by sqrt(.1875 / 10,000) = .0043, of those known to both by .005; five of each.
    assert [len(mine) / edges for mine in known] == pytest.approx([0.75, 0.75], abs=0.022)
    assert len(known[0] & known[1]) / edges == pytest.approx(0.5, abs=0.025)


@given(graphs(), st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_the_same_seed_gives_the_same_parts(graph, seed):
    first, second = (partition(*graph, holders=3, seed=seed) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.edge_index, other.edge_index)


@given(st.integers(1, 6), st.integers(0, 200))
def test_even_shares_differ_by_one_at_most(holders, columns):
    parts = partition(torch.zeros(2, columns), torch.empty(2, 0).long(), holders=holders, seed=0)
    widths = sorted(part.x.shape[1] for part in parts)
    assert widths[-1] - widths[0] <= 1


def test_shares_of_everything_and_nothing():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    first, second = partition(torch.ones(3, 4), edges, holders=2, seed=0, proportions=[1, 0], edge_proportions=[0, 1])
    assert (first.x.shape[1], second.x.shape[1]) == (4, 0)
    assert (first.edge_index.shape[1], second.edge_index.shape[1]) == (0, 4)


@pytest.mark.parametrize("wrong", [[0.5, 0.6], [1.5, -0.5], [1.0], [0.2, 0.3, 0.5], [float("nan"), 1.0]])
def test_proportions_that_do_not_add_up(wrong):
    with pytest.raises(ConfigError):
        check_proportions(wrong, 2)


def test_names_of_holders():
    assert holder_names(3) == ["A", "B", "C"]
    names = holder_names(30)
    assert all(one != other for one, other in pairwise(names))
    with pytest.raises(ConfigError):
        holder_names(0)


def test_unknown_edge_split():
    with pytest.raises(ConfigError, match="undirected or directed"):
        partition(torch.ones(3, 4), torch.empty(2, 0).long(), holders=2, seed=0, edge_split="half")
