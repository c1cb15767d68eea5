import pytest
import torch

from tests.conftest import random_graph
from tests.protocol.joint import agreement_of
from vfgnn.data.partition import partition
from vfgnn.errors import PolicyRefused
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model.leak_meter import meter, rank
from vfgnn.settings import make_settings


def test_rank():
    draw = torch.Generator().manual_seed(0)
    base = torch.randn(20, 3, generator=draw)
    assert rank(base) == 3
    assert rank(torch.cat([base, base @ torch.randn(3, 4, generator=draw)], dim=1)) == 3
    assert rank(torch.zeros(5, 2)) == 0
    assert rank(torch.zeros(5, 0)) == 0


def test_the_share_is_revealed_dimensions_over_rank():
    features = [torch.eye(30, 20), torch.eye(30, 6)]
    federation = agreement_of(features, [True, True], dim=4, epochs=9)
    one = meter(federation, "h0", features[0])
    assert (one.revealed_dimensions, one.rank, one.share) == (40, 20, 2.0)
    assert meter(federation, "h0", features[0], steps=4).share == 1.0
    assert "known rows" in meter(agreement_of(features, [True, True], dim=8), "h1", features[1]).explain()


def test_nobody_to_leak_to():
    features = [torch.eye(30, 20), torch.eye(30, 6)]
    assert meter(agreement_of(features, [True, False]), "h0", features[0]) is None
    assert meter(agreement_of(features, [False, True]), "h0", features[0]) is not None


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, True),
        ({"accept_h0_leak": True}, False),
        ({"joint_layer_epochs": 0, "dim": 2}, False),
        ({"initial_embedding": "individual"}, False),
    ],
)
def test_a_run_that_would_reveal_everything_is_refused_unless_accepted(changes, refused):
    graph = random_graph()
    holdings = partition(graph.x, graph.edge_index, holders=2, seed=0)
    settings = make_settings({"dim": 8, "epochs": 10, **changes}, where="test")
    if not refused:
        build(holdings, split_labels(graph), settings, seed=0)
        return
    with pytest.raises(PolicyRefused, match="accept_h0_leak"):
        build(holdings, split_labels(graph), settings, seed=0)
