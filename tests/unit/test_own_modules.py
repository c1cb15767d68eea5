"""A combine of one's own: what it may do, and what is refused before anything is sent."""

import pytest
import torch
from torch import nn

from tests.own_code import WeightedMax
from vfgnn.errors import ModuleError
from vfgnn.model.cg2_server import ServerNetwork
from vfgnn.settings import Settings

OWN = Settings(combine="own", dim=8, hidden_layers=0, dropout=0.0)


def of(forward):
    """A combine that does just this, with a parameter so that it can be trained."""

    class Made(nn.Module):
        def __init__(self, holders, dim):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, rows):
            return forward(rows * self.weight)

    return Made


def test_the_servers_layers_are_over_the_users_combine():
    rows = torch.rand(3, 5, 8)
    network = ServerNetwork(OWN, 3, WeightedMax)
    assert torch.equal(network(rows, []), rows.amax(dim=0))
    assert [name for name, _ in network.named_parameters()] == ["combine.own.weight"]


def test_it_computes_in_the_precision_of_the_federation():
    network = ServerNetwork(OWN.model_copy(update={"precision": "float64"}), 2, WeightedMax)
    assert network(torch.rand(2, 3, 8, dtype=torch.float64), []).dtype == torch.float64


@pytest.mark.parametrize(
    ("forward", "said"),
    [
        (lambda rows: rows.flatten(1), "one row of width d"),
        (lambda rows: rows.mean(dim=0)[:, :4], "one row of width d"),
        (lambda rows: rows.mean(dim=0).double(), "one row of width d"),
        (lambda rows: [1, 2], "one row of width d"),
        (lambda rows: rows.mean(dim=0).detach(), "pass the gradient on"),
        (lambda rows: rows.mean(dim=0) - rows.mean(dim=(0, 1)), "each node by itself"),
        (lambda rows: rows.mean(dim=0) + torch.rand(rows.shape[1:]), "same rows each time"),
    ],
)
def test_what_would_not_fit_the_protocol_is_refused(forward, said):
    with pytest.raises(ModuleError, match=said):
        ServerNetwork(OWN, 2, of(forward))


@pytest.mark.parametrize("part", [nn.Dropout(0.5), nn.BatchNorm1d(8)])
def test_what_differs_between_training_and_evaluation_is_refused(part):
    class Made(nn.Module):
        def __init__(self, holders, dim):
            super().__init__()
            self.part = part

        def forward(self, rows):
            return self.part(rows.mean(dim=0))

    with pytest.raises(ModuleError, match="in training and in evaluation"):
        ServerNetwork(OWN, 2, Made)


def test_a_shape_that_goes_wrong_later_is_refused_then():
    def forward(rows):
        return rows.mean(dim=0) if rows.shape[1] < 10 else rows.mean(dim=0)[1:]

    network = ServerNetwork(OWN, 2, of(forward))
    with pytest.raises(ModuleError, match="one row of width d"):
        network(torch.rand(2, 11, 8), [])


def test_own_without_a_module_and_what_is_no_module_are_refused():
    with pytest.raises(ModuleError, match="needs a module"):
        ServerNetwork(OWN, 2)
    with pytest.raises(ModuleError, match="no module"):
        ServerNetwork(OWN, 2, lambda holders, dim: "mean")
