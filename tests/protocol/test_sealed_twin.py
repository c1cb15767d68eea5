"""A sealed training equals the integer twin word by word: every result of every call, at any number of holders."""

import pytest
import torch

from tests.sealed_twin import small, train, train_twin
from vfgnn.data.holdings import Holding
from vfgnn.mpc.sharing import reconstruct


def with_edges(holding, *pairs):
    """The same columns, and these edges besides."""
    more = torch.tensor(pairs, dtype=torch.int64).t()
    return Holding(x=holding.x, edge_index=torch.cat([holding.edge_index, more], dim=1))


def awkward():
    """Self-loops, an edge listed twice and both ways, an edge that two holders have, a node without edges."""
    held, labels = small(3, edges=12, seed=4)
    held[0] = with_edges(held[0], (1, 1), (2, 3), (2, 3), (3, 2), (5, 6))
    held[1] = with_edges(held[1], (6, 5), (2, 2))
    return held, labels


CASES = {
    "2 holders": (lambda: small(2), {}),
    "3 holders": (lambda: small(3, seed=1), {}),
    "4 holders": (lambda: small(4, seed=2), {}),
    "5 holders, 2 classes": (lambda: small(5, classes=2, seed=3), {}),
    "no columns, no edges, neither but labels": (
        lambda: small(3, columns=[0, 6, 4], without_edges=(0, 2), seed=5),
        {},
    ),
    "the label holder has everything": (lambda: small(3, columns=[6, 0, 0], without_edges=(1, 2), seed=6), {}),
    "nobody has edges": (lambda: small(2, without_edges=(0, 1)), {}),
    "awkward edges": (awkward, {}),
    "real and whole columns": (lambda: small(3, real=(1,), seed=7), {}),
    "real columns only": (lambda: small(2, real=(0, 1), seed=8), {}),
    "hops": (lambda: small(3, real=(0,), seed=9), {"kernel": "hops", "order": "labels", "steps": 3}),
    "hops, 7 classes, one hop": (
        lambda: small(2, classes=7, nodes=40, seed=10),
        {"kernel": "hops", "order": "labels", "steps": 2, "hops": 1},
    ),
    "no teleport": (lambda: small(2, seed=11), {"teleport": 0.0, "hops": 2}),
    "one hop, one step, one ridge": (lambda: small(2, seed=12), {"hops": 1, "steps": 1, "ridges": [1.0]}),
    "scores": (lambda: small(3, seed=13), {"opens": "scores"}),
    "4 bits of degrees": (lambda: small(2, edges=60, nodes=30, seed=14), {"degree_bits": 4}),
    "columns travel": (lambda: small(3, real=(1,), seed=16), {"order": "features", "columns_at_once": 4}),
    "columns travel, hops": (
        lambda: small(2, classes=2, nodes=40, seed=17),
        {"order": "features", "kernel": "hops", "hops": 2, "columns_at_once": 3},
    ),
    "columns travel, all at once, a holder without": (
        lambda: small(4, columns=[0, 6, 4, 1], without_edges=(3,), seed=18),
        {"order": "features"},
    ),
    "more than 64 training rows": (lambda: small(2, nodes=150, edges=200, seed=15), {"hops": 3}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_every_result_is_the_integer_one(name):
    make, changed = CASES[name]
    held, labels = make()
    settings = {"hops": 4, "order": "labels", **changed}
    trained = train(held, labels, **settings)
    calls, training, leader = train_twin(held, labels, **settings)
    joined = list(trained.joined())
    assert [call for call, _ in joined] == [call for call, _ in calls]
    for number, ((call, found), (_, expected)) in enumerate(zip(joined, calls, strict=True)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one.long(), other.long()), f"call {number}: {call}"
    weights = [holder.state().weights for holder in trained.federation.holders]
    for owner, expected in training.weights.items():
        assert torch.equal(reconstruct([own[owner] for own in weights]), expected)
    assert torch.equal(trained.leader.state().opened.values, leader.heard)
    assert torch.equal(reconstruct([holder.state().offset for holder in trained.federation.holders]), training.offset)
