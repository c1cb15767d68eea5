from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vfgnn.agreement import make_agreement
from vfgnn.errors import ModuleError
from vfgnn.model.cg1_edges import confidence_weight
from vfgnn.model.cg2_server import COMBINES, ServerNetwork
from vfgnn.settings import Combine, make_settings


class Weighted(nn.Module):
    def __init__(self, holders, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(holders, 1, dim))

    def forward(self, rows):
        return (self.weight * rows).sum(0)


def combine(how, holders=3, dim=4):
    settings = make_settings({"combine": how, "dim": dim, "precision": "float64"}, where="test")
    return COMBINES[how].make(settings, holders, Weighted if how == "own" else None)


@pytest.fixture
def rows():
    return torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_the_settings_know_every_combine_and_no_other():
    assert tuple(COMBINES) == get_args(Combine)


@pytest.mark.parametrize("hidden_layers", [0, 1])
@pytest.mark.parametrize("how", COMBINES)
def test_z_has_the_width_that_all_parties_expect(rows, how, hidden_layers):
    holders = [{"name": name, "features": 1, "edges": True} for name in "abc"]
    settings = {"combine": how, "dim": 4, "hidden_layers": hidden_layers, "precision": "float64"}
    federation = make_agreement(nodes=5, classes=2, holders=holders, label_holder="a", settings=settings)
    network = ServerNetwork(federation.settings, 3, Weighted if how == "own" else None)
    masks = network.draw_dropout(5, torch.Generator().manual_seed(1))
    assert network(rows, masks).shape == (5, federation.hidden_dim)


def test_a_combine_of_ones_own_must_be_given():
    with pytest.raises(ModuleError, match="combine = own"):
        COMBINES["own"].make(make_settings({"combine": "own"}, where="test"), 3, None)


def test_concat_mean_and_regression(rows):
    assert torch.equal(combine("concat")(rows), torch.cat([rows[0], rows[1], rows[2]], dim=1))
    assert torch.allclose(combine("mean")(rows), (rows[0] + rows[1] + rows[2]) / 3)
    regression = combine("regression")
    assert torch.allclose(regression(rows), combine("mean")(rows))  # begins as the mean
    with torch.no_grad():
        regression.weight.copy_(torch.arange(12.0, dtype=torch.float64).reshape(3, 1, 4))
    w = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    assert torch.allclose(regression(rows), w[0] * rows[0] + w[1] * rows[1] + w[2] * rows[2])


def test_confidence_is_a_weighted_mean_of_unit_rows(rows):
    unit = F.normalize(rows, dim=2)
    weight = confidence_weight(torch.randint(0, 9, (3, 5), generator=torch.Generator().manual_seed(1)), 5).double()
    by_hand = (weight[..., None] * unit).sum(0) / weight.sum(0)[:, None]
    assert torch.allclose(combine("confidence")(weight[..., None] * unit), by_hand)


def test_confidence_passes_the_true_gradient(rows):
    """Cutting the norms out of the graph changes nothing: a unit row cannot grow."""
    weight = torch.rand(3, 5, 1, dtype=torch.float64)
    grads = []
    for cut in (True, False):
        leaf = rows.clone().requires_grad_()
        published = weight * F.normalize(leaf, dim=2)
        scale = published.detach() if cut else published
        out = published.sum(0) / scale.norm(dim=2, keepdim=True).sum(0)
        out.tanh().sum().backward()
        grads.append(leaf.grad)
    assert torch.allclose(*grads)


@pytest.mark.parametrize("how", COMBINES)
def test_a_row_that_is_zero_everywhere_stays_zero(how):
    out = combine(how)(torch.zeros(3, 2, 4, dtype=torch.float64))
    assert not out.any()


def test_confidence_weights_grow_to_one():
    weight = confidence_weight(torch.arange(10), 5)
    assert float(weight[0]) > 0
    assert bool((weight.diff() >= 0).all())
    assert bool((weight[5:] == 1).all())


def test_dropout_is_drawn_from_the_partys_own_generator():
    settings = make_settings({"dim": 8, "hidden_layers": 2, "dropout": 0.5}, where="test")
    network = ServerNetwork(settings, holders=2)
    rows = torch.randn(2, 100, 8)
    masks = network.draw_dropout(100, torch.Generator().manual_seed(1))
    assert [tuple(mask.shape) for mask in masks] == [(100, 8)] * 3
    assert torch.equal(network(rows, masks), network(rows, masks))
    assert not torch.equal(network(rows, masks), network(rows, []))
    kept = torch.cat([mask.flatten() for mask in masks]).double().mean()
    assert abs(float(kept) - 0.5) < 5 * 0.5 / 2400**0.5  # five standard errors


def test_without_hidden_layers_z_is_the_combined_row():
    settings = make_settings({"dim": 4, "hidden_layers": 0, "precision": "float64"}, where="test")
    network = ServerNetwork(settings, holders=3)
    rows = torch.randn(3, 5, 4, dtype=torch.float64)
    assert torch.equal(network(rows, []), rows.mean(0))
