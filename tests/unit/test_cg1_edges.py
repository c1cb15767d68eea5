import os
import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import nn

from tests.conftest import random_graph
from vfgnn.errors import ConfigError, ModuleError
from vfgnn.model.cg1_edges import GNNS, LSTM_NEIGHBOURS, LocalGnn, LocalGraph
from vfgnn.model.own_modules import check_module
from vfgnn.settings import Gnn, make_settings

OURS = [gnn for gnn in GNNS if gnn != "own"]
CPU = torch.device("cpu")


def made(gnn, **changes):
    return make_settings({"gnn": gnn, "layers": 2, "dim": 6, "precision": "float64", **changes}, where="test")


def local(settings, edge_index, nodes=40):
    torch.manual_seed(0)
    return LocalGnn(settings), LocalGraph(edge_index, nodes, settings, CPU)


def test_the_settings_know_every_gnn_and_no_other():
    assert tuple(GNNS) == get_args(Gnn)


@pytest.mark.parametrize("gnn", GNNS)
def test_fanout_needs_a_module_for_each_layer(gnn):
    if GNNS[gnn].layered:
        assert made(gnn, fanout=[2, 3]).fanout == (2, 3)
    else:
        with pytest.raises(ConfigError, match="fanout"):
            made(gnn, fanout=[2, 3])


@pytest.mark.parametrize("gnn", GNNS)
def test_edge_weights_need_a_gnn_that_uses_them(gnn):
    edge_index, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0.5, 2.0])
    if GNNS[gnn].normalises:
        LocalGraph(edge_index, 3, made(gnn), CPU, weight)
    else:
        with pytest.raises(ConfigError, match="gcn or appnp"):
            LocalGraph(edge_index, 3, made(gnn), CPU, weight)


@pytest.mark.parametrize("gnn", OURS)
def test_a_csr_adjacency_gives_the_rows_of_the_edge_list(gnn):
    gnn_module, graph = local(made(gnn), random_graph().edge_index)
    h0, around = torch.randn(40, 6, dtype=torch.float64), graph.around(None)
    assert (around[0].adjacency is not None) == GNNS[gnn].takes_csr
    listed = gnn_module(h0, [replace(one, adjacency=None) for one in around])
    assert float((gnn_module(h0, around) - listed).detach().abs().max()) < 1e-12  # as below


@pytest.mark.parametrize("gnn", OURS)
def test_a_row_does_not_depend_on_the_neighbourhood_it_is_computed_in(gnn):
    settings = made(gnn)
    gnn_module, graph = local(settings, random_graph().edge_index)
    h0 = torch.randn(40, 6, dtype=torch.float64)
    rows = torch.tensor([17, 3, 30])
    everywhere = gnn_module(h0, graph.around(None))
    # The same sums of at most 40 terms of size < 10, perhaps in another order: 40 * 10 * 1.1e-16, a few layers deep.
    difference = gnn_module(h0, graph.around(rows)) - everywhere[rows]
    assert float(difference.detach().abs().max()) < 1e-12


@pytest.mark.parametrize("gnn", [g for g in OURS if g != "sage_lstm"])
def test_the_order_of_edges_does_not_matter(gnn):
    settings = made(gnn)
    edge_index = random_graph().edge_index
    gnn_module, graph = local(settings, edge_index)
    _, shuffled = local(settings, edge_index[:, torch.randperm(edge_index.shape[1])])
    h0 = torch.randn(40, 6, dtype=torch.float64)
    difference = gnn_module(h0, graph.around(None)) - gnn_module(h0, shuffled.around(None))
    assert float(difference.detach().abs().max()) < 1e-12  # as above


@pytest.mark.parametrize("gnn", OURS)
def test_rows_have_unit_length_and_zero_stays_zero(gnn):
    settings = made(gnn)
    gnn_module, graph = local(settings, random_graph().edge_index)
    rows = gnn_module(torch.randn(40, 6, dtype=torch.float64), graph.around(None))
    assert torch.allclose(rows.norm(dim=1), torch.ones(40, dtype=torch.float64))
    for bias in (p for name, p in gnn_module.named_parameters() if "bias" in name):
        nn.init.zeros_(bias)
    if gnn != "sage_lstm":  # an LSTM of zeros is not zero
        assert not gnn_module(torch.zeros(40, 6, dtype=torch.float64), graph.around(None)).any()


@pytest.mark.parametrize("gnn", OURS)
def test_a_graph_without_edges(gnn):
    settings = made(gnn)
    gnn_module, graph = local(settings, torch.empty(2, 0, dtype=torch.int64))
    rows = gnn_module(torch.randn(40, 6, dtype=torch.float64), graph.around(torch.tensor([1, 2])))
    assert rows.shape == (2, 6)
    assert torch.isfinite(rows).all()


def test_mean_aggregation_by_hand():
    """Node 2 hears 0 and 1: tanh(W_l mean(h_0, h_1) + b + W_r h_2), scaled to length 1."""
    settings = made("sage_mean", layers=1, dim=2)
    gnn_module, graph = local(settings, torch.tensor([[0, 1], [2, 2]]), nodes=3)
    h0 = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 0.5]], dtype=torch.float64)
    convolution = gnn_module.convolutions[0]
    by_hand = torch.tanh(convolution.lin_l(h0[:2].mean(0)) + convolution.lin_r(h0[2]))
    out = gnn_module(h0, graph.around(torch.tensor([2])))[0]
    assert torch.allclose(out, by_hand / by_hand.norm())


def test_fanout_bounds_the_neighbours_and_draws_anew():
    settings = made("sage_mean", fanout=[2, 3])
    star = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.int64)])
    _, graph = local(settings, star)
    draw = torch.Generator().manual_seed(0)
    first, second = graph.around(None, draw)
    assert (first.edge_index.shape[1], second.edge_index.shape[1]) == (2, 3)
    assert not torch.equal(graph.around(None, draw)[0].edge_index, first.edge_index)
    assert graph.around(None)[0].edge_index.shape[1] == 39


def test_every_neighbour_is_drawn_equally_often():
    """2 of 39 in 4,000 draws: 205 times each, deviation sqrt(4000 * 2/39 * 37/39) = 13.9; five deviations."""
    settings = made("sage_mean", layers=1, fanout=[2])
    star = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.int64)])
    _, graph = local(settings, star)
    draw = torch.Generator().manual_seed(1)
    counts = torch.zeros(40)
    for _ in range(4000):
        counts[graph.around(None, draw)[0].edge_index[0]] += 1
    assert float((counts[1:] - 4000 * 2 / 39).abs().max()) < 5 * 13.9


def test_lstm_is_bounded():
    settings = made("sage_lstm")
    star = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.int64)])
    _, graph = local(settings, star)
    assert graph.around(None)[0].edge_index.shape[1] == LSTM_NEIGHBOURS


class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))


@pytest.mark.parametrize("module", [WithDropout(), nn.BatchNorm1d(3), nn.Sequential(nn.Dropout(0.1))])
def test_modules_that_differ_between_training_and_evaluation_are_refused(module):
    with pytest.raises(ModuleError, match="same rows"):
        check_module(module)


def test_a_module_must_keep_the_shape():
    settings = made("own")

    class Wide(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.linear = nn.Linear(dim, 2 * dim)

        def forward(self, x, edge_index):
            return self.linear(x)

    graph = LocalGraph(random_graph().edge_index, 40, settings, CPU)
    with pytest.raises(ModuleError, match="shape"):
        LocalGnn(settings, Wide)(torch.randn(40, 6, dtype=torch.float64), graph.around(None))
    with pytest.raises(ModuleError):
        LocalGnn(settings, None)


def test_one_gnn_after_another_in_one_process(tmp_path):
    """The LSTM first: PyG keeps the code that it generated for the first instance of a class; no file of it stays."""
    code = """
import torch
from vfgnn.settings import Settings
from vfgnn.model.cg1_edges import LocalGnn, LocalGraph
for gnn in ("sage_lstm", "sage_mean", "sage_pool", "sage_lstm"):
    settings = Settings(gnn=gnn, dim=4, layers=1)
    graph = LocalGraph(torch.tensor([[0, 1], [1, 0]]), 3, settings, torch.device("cpu"))
    LocalGnn(settings)(torch.rand(3, 4), graph.around(None))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(command, check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_row_of_zeros_has_no_gradient():
    """A node without features and neighbours: 0 / |0| would pass on 1e12 times what comes back to it."""
    settings = made("appnp")
    gnn, graph = local(settings, torch.tensor([[0, 1], [1, 0]]), nodes=3)
    h0 = torch.tensor([[1.0] * 6, [2.0] * 6, [0.0] * 6], dtype=torch.float64, requires_grad=True)
    rows = gnn(h0, graph.around(None))
    (rows * torch.arange(6.0)).sum().backward()
    assert torch.equal(rows[2], torch.zeros(6, dtype=torch.float64)) and torch.equal(
        h0.grad[2], torch.zeros(6).double()
    )
    assert 0 < float(h0.grad[:2].abs().max()) < 100
    assert torch.allclose(rows[:2].norm(dim=1), torch.ones(2, dtype=torch.float64))
