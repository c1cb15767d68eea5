import pytest
import torch

from tests.conftest import random_graph
from vfgnn.data.holdings import FeatureMatrix, Holding, Labels
from vfgnn.errors import DataError
from vfgnn.lab.federation import split_labels

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_values_that_are_not_finite_are_placed(value):
    x = torch.zeros(5, 3)
    x[3, 1] = value
    with pytest.raises(DataError, match="row 3, column 1"):
        Holding(x=x, edge_index=NO_EDGES)


@pytest.mark.parametrize("end", [-1, 5])
def test_edges_outside_the_node_range_are_placed(end):
    with pytest.raises(DataError, match="edge 1"):
        Holding(x=torch.zeros(5, 3), edge_index=torch.tensor([[0, 1], [1, end]]))


@pytest.mark.parametrize("edges", [torch.zeros(3, 2).long(), torch.zeros(2, 2), torch.zeros(2).long()])
def test_edges_have_a_shape(edges):
    with pytest.raises(DataError, match="edge_index"):
        Holding(x=torch.zeros(5, 3), edge_index=edges)


@pytest.mark.parametrize("x", [torch.zeros(5), torch.zeros(5, 2, dtype=torch.complex64)])
def test_features_are_a_real_matrix(x):
    with pytest.raises(DataError, match="features"):
        Holding(x=x, edge_index=NO_EDGES)


def test_missing_labels_are_counted_not_shown():
    graph = random_graph()
    graph.y[graph.train_mask.nonzero()[0]] = -1
    with pytest.raises(DataError, match=r"labels missing in the train rows(.|\n)*1 row"):
        split_labels(graph)


@pytest.mark.parametrize("name", ["x", "edge_index", "y", "train_mask", "val_mask", "test_mask"])
def test_each_part_of_the_data_is_needed(name):
    graph = random_graph()
    del graph[name]
    with pytest.raises(DataError, match=name if name != "y" else "labels missing"):
        split_labels(graph)


def test_empty_and_overlapping_splits():
    rows = torch.arange(2)
    with pytest.raises(DataError, match="no val rows"):
        Labels(y=torch.zeros(4).long(), train=rows, val=rows[:0], test=rows, classes=2)
    with pytest.raises(DataError, match="both for training and for validation"):
        Labels(y=torch.zeros(4).long(), train=rows, val=rows, test=rows + 2, classes=2)


def test_reprs_show_sizes_only():
    x = torch.full((3, 2), 0.123456)
    holding = Holding(x=x, edge_index=torch.tensor([[0, 1], [1, 2]]))
    labels = Labels(
        y=torch.tensor([0, 1, 1]), train=torch.tensor([0]), val=torch.tensor([1]), test=torch.tensor([2]), classes=2
    )
    for text in (repr(holding), repr(labels), repr(FeatureMatrix(x))):
        assert "0.12" not in text
        assert "tensor" not in text


@pytest.mark.parametrize("sparse", [True, False])
def test_products_and_their_gradient(sparse):
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(6, 4, generator=draw, dtype=torch.float64).round()
    matrix = FeatureMatrix(x, sparse=sparse).to(torch.float64, torch.device("cpu"))
    w = torch.rand(4, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    matrix.times(w).square().sum().backward()
    by_hand = w.detach().clone().requires_grad_()
    (x @ by_hand).square().sum().backward()
    assert torch.allclose(w.grad, by_hand.grad)
    assert torch.allclose(matrix.transpose_times(x), x.t() @ x)
