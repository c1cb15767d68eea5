"""The search for values of the sealed model: one Krylov space tells what trainings of their own would, and the rule."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from vfgnn.experiments import sealed_choice as choice
from vfgnn.experiments.sealed_choice import Choice, Judged
from vfgnn.experiments.sealed_columns import CandidateKernel, prepared
from vfgnn.experiments.sealed_krylov import grow_spaces
from vfgnn.experiments.splits import Split
from vfgnn.model.propagated_kernels import SPREAD, make_kernel
from vfgnn.model.propagated_ridge import RidgeModel, fit_by_kernel, make_targets
from vfgnn.model.propagation import Smoothing, neighbours

NODES, COLUMNS = 60, 12


@pytest.fixture
def graph():
    draw = np.random.default_rng(3)
    x = sp.csr_array((draw.random((NODES, COLUMNS)) < 0.4) * draw.random((NODES, COLUMNS)))
    return x, neighbours(draw.integers(0, NODES, (2, 150)), NODES), draw.integers(0, 3, NODES)


@pytest.mark.parametrize("minimum", ["weights", "kernel"])
@pytest.mark.parametrize("steps", [2, 4])
def test_one_space_tells_what_a_training_of_its_own_would(graph, steps, minimum):
    """Float rounding of a few products: 1e-9 is far above it, and far below any score that decides a class."""
    x, adjacency, y = graph
    splits = [Split(np.arange(0, 20), np.arange(30, 50)), Split(np.arange(10, 28), np.arange(40, 60))]
    kernel = CandidateKernel(x, Smoothing(adjacency, hops=3, teleport=0.1))
    spaces = grow_spaces(kernel.times, y, splits, steps=4)
    model = RidgeModel(hops=3, steps=steps, spread=SPREAD["smooth"], ridge=(0.3,), minimum=minimum)
    for split, space in zip(splits, spaces, strict=True):
        own = make_kernel(x, adjacency, name="smooth", hops=3, teleport=0.1)
        fit = fit_by_kernel(own, make_targets(y, split.train, 3), model)
        assert np.abs(space.scores(steps, 0.3, minimum) - fit.scores[0][split.val]).max() < 1e-9


def test_centring_and_own_weights_are_what_they_say(graph):
    x, adjacency, _ = graph
    smoothing, p = Smoothing(adjacency, hops=2, teleport=0.1), np.random.default_rng(5).normal(size=(NODES, 2))
    dense = x.toarray()
    centred = dense - dense.mean(axis=0)
    whole = centred @ centred.T + 0.3 * (dense**2).sum() / NODES * np.eye(NODES)
    found = CandidateKernel(x, smoothing, own=0.3, centred=True).times(p)
    assert np.abs(found - smoothing.apply(whole @ smoothing.apply(p))).max() < 1e-9


def test_rows_have_length_1_at_every_holder(graph):
    x, _, _ = graph
    owner = np.arange(COLUMNS) % 2
    lengths = np.sqrt(prepared(x, "rows", owner).power(2).sum(axis=1))
    held = sum((x[:, np.flatnonzero(owner == one)].sum(axis=1) > 0).astype(int) for one in (0, 1))
    assert np.abs(lengths - np.sqrt(held)).max() < 1e-9


def test_owners_are_those_of_a_partition():
    data = Data(x=torch.rand(4, 11), edge_index=torch.tensor([[0, 1], [1, 2]]))
    counts = np.bincount(choice.owners(data, 3), minlength=3)
    assert counts.sum() == 11 and counts.max() - counts.min() <= 1


def test_the_rule_takes_the_usual_values_unless_others_are_worth_their_deductions():
    usual, other, binary = Choice(), Choice(Judged(hops=6), steps=3), Choice(Judged(columns="binary"))
    assert (usual.departures, other.departures, binary.departures) == (0, 2, 1)
    assert choice.chosen({usual: 0.8, other: 0.8019, binary: 0.8059}) == usual
    assert choice.chosen({usual: 0.8, other: 0.8021, binary: 0.8059}) == other
    assert choice.chosen({usual: 0.8, other: 0.8019, binary: 0.8061}) == binary


def test_a_path_is_judged_where_it_was_not_chosen():
    """One split: in the first half the second strength is right more often, so the second half counts that one's."""
    counts = [[[10, 200], [11, 20], *[[0, 0]] * 4]]
    right = choice._by_halves([counts], (0.03, 0.1)) * choice.VALIDATION
    assert right == pytest.approx(20 + 10)
